"""A run as rows, texts and pictures that a template prints.

Public: `neighbours`, `run_view`, `sparkline`, `words`.
"""
