"""Throughput by number of nodes and devices, computed from logs.

Public: `choice`, `printed_speeds`, `scaling`, `speeds`, `topologies`.
"""
