"""Bulk log reader: columns of values instead of one object per value, in bounded memory.

Public: `batch`, `columns`, `series`, `summary`.
"""
