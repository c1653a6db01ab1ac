"""`tipcflow scaling`: throughput by number of nodes and devices.

Public: nothing.
"""
