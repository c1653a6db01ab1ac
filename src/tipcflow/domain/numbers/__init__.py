"""Measurements, metrics, series, and comparability of runs.

Public: `changes`, `environment`, `metrics`, `results`, `spread`, `units`.
"""
