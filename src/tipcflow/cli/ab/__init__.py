"""`tipcflow ab`: whether version B of a suite or framework is slower or faster than version A.

Public: nothing.
"""
