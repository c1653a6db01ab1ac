"""Comparison of metrics with accepted earlier runs: baseline, level, pins, attribution."""
