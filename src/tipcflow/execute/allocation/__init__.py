"""Nodes of a run from Slurm: requested, waited for, and released.

Public: `client`, `document`, `hold`, `leftovers`.
"""
