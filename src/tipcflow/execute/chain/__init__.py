"""Stored runs of a chain -> its history; metrics of several chains -> lines of a chart.

Public: `load`, `series`.
"""
