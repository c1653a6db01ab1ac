"""Stored runs of a chain -> its history.

Public: `load`.
"""
