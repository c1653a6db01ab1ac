"""A/B comparison of two versions of a chain: their runs in pairs, the values of the runs, and the loop.

Public: `comparison`, `metrics`, `progress`, `sides`, `text`.
"""
