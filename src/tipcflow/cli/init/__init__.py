"""`tipcflow init`: inspects a suite and proposes its file.

Public: nothing.
"""
