"""Slurm: its commands as text, what they print, and the process that starts jobs on the nodes of an allocation.

Public: `commands`, `output`.
"""
