"""Quarantines of failures: making one from a run's result, marking runs, and release after clean runs.

Public: `add`, `release`.
"""
