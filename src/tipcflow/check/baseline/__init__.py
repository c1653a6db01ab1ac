"""Comparison of metrics with accepted earlier runs: baseline, level, pins, attribution.

Public: `detector_limits`, `run_by_run`.
"""
