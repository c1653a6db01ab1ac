"""Measurements, metrics, series, and comparability of runs.

Public: `changes`, `environment`, `limits`, `metrics`, `spread`.
"""
