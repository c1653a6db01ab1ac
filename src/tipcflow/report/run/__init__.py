"""A stored run for display: `data` holds it, `lines` are the rows of its tables, `timeline` its time axis.

Public: `data`, `lines`, `timeline`.
"""
