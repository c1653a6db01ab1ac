"""Stored runs of a chain -> its history and its metrics; metrics of several chains -> lines of a chart.

Public: `load`, `measured`, `series`.
"""
