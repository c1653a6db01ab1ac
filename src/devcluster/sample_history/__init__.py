"""A generated history: a year of runs of 60 chains that no node executed (`tipcflow demo --history`).

Public: `fill`.
"""
