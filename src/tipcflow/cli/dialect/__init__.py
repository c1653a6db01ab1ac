"""`tipcflow dialect`: dialects and their checks.

Public: nothing.
"""
