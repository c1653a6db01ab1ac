"""`tipcflow compare`: two or three runs side by side.

Public: nothing.
"""
