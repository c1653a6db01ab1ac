"""Alert: a regression of a chain, from its first bad run until its level returns.

Public: `audit`, `entry`.
"""
