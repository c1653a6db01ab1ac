"""`tipcflow suites`: the suites of the configuration.

Public: nothing.
"""
