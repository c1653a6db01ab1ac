"""`tipcflow alerts`: regressions with state, owner and history.

Public: nothing.
"""
