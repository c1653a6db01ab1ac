"""Measurements, metrics, series, and comparability of runs.

Public: `changes`, `environment`, `measured`, `metric_groups`, `metrics`, `seed`, `spread`, `units`.
"""
