"""One file per schema revision.

Public: nothing.
"""
