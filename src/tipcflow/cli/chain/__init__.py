"""`tipcflow chain`: the metrics of a chain over its runs.

Public: nothing.
"""
