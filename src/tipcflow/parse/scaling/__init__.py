"""Throughput per node and device count, from logs."""
