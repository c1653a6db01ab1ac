"""Throughput by number of nodes and devices, computed from logs.

Public: `choice`, `plausibility`, `printed_speeds`, `scaling`, `speeds`, `topologies`.
"""
