"""Queries for pages, history and baselines.

Public: `alerts`, `check_history`, `coverage`, `operation`, `pages`, `readonly`, `states`.
"""
