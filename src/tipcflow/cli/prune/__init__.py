"""`tipcflow prune`: removes old files of runs.

Public: nothing.
"""
