"""Throughput by number of nodes and devices, computed from logs.

Public: `choice`, `idle`, `plausibility`, `printed_speeds`, `scaling`, `speeds`, `topologies`.
"""
