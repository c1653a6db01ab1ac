"""Bisection of a chain: commits or framework builds, measurements from stored and new runs, and the loop.

Public: `builds`, `candidates`, `commits`, `ends`, `holder`, `loop`, `parallel`, `subject`, `text`, `touched`.
"""
