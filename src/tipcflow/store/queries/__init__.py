"""Queries for pages, history and baselines.

Public: `alerts`, `check_history`, `coverage`, `node_use`, `operation`, `pages`, `readonly`, `repeats`, `states`.
"""
