"""Measurements, metrics, series, and what makes the numbers of two runs comparable."""
