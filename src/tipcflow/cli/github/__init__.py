"""`tipcflow select` and `tipcflow github …`.

Public: nothing.
"""
