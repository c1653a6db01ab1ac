"""`tipcflow plan`: shows what a run would do, as a table, commands, a diff or a list of expected evidence.

Public: nothing.
"""
