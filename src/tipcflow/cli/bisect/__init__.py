"""`tipcflow bisect`: the commit that made a chain worse.

Public: nothing.
"""
