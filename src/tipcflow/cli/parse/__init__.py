"""`tipcflow parse`: metrics of log files, without a run.

Public: nothing.
"""
