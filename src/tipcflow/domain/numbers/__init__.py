"""Measurements, metrics, series, and comparability of runs.

Public: `changes`, `environment`, `metric_groups`, `metrics`, `spread`, `units`.
"""
