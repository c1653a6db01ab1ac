"""A run as rows, texts and pictures that a template prints.

Public: `chain_view`, `compare_view`, `neighbours`, `run_view`, `sparkline`, `words`.
"""
