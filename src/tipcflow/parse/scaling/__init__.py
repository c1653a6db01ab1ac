"""Throughput by number of nodes and devices, computed from logs."""
