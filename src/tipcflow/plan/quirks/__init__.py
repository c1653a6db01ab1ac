"""Quirks: named deviations of a suite's scripts from its params files.

Public: nothing.
"""
