"""A run as rows, texts and charts that a template prints.

Public: `chain_view`, `compare_view`, `neighbours`, `run_view`, `sparkline`, `words`.
"""
