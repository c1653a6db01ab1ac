"""`tipcflow nodes`: lists, inspects and cleans nodes.

Public: nothing.
"""
