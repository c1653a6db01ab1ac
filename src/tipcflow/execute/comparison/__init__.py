"""Stored runs -> their comparison, and the earlier runs that a run is worth comparing with.

Public: `load`, `predecessors`.
"""
