"""Bisection of a chain: commits between two refs, measurements from stored and new runs, and the loop.

Public: `commits`, `loop`, `subject`.
"""
