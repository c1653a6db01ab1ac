"""`tipcflow doctor`: diagnoses an installation and suggests fixes.

Public: nothing.
"""
