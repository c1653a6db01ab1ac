"""Access of a process that polls the database for many triggers.

Public: `pool`.
"""
