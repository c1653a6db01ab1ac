"""Measurements, metrics, series, and comparability of runs."""
