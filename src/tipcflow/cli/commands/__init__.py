"""All commands of `tipcflow` as a table, imported when they run; shell completion.

Public: nothing.
"""
