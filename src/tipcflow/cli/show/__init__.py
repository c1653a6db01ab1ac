"""`tipcflow show`: one run.

Public: nothing.
"""
