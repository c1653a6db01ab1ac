"""`tipcflow quarantine`: failures that do not block for a limited time.

Public: nothing.
"""
