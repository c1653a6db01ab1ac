"""Queries for pages, history and baselines.

Public: `alerts`, `coverage`, `operation`, `pages`, `readonly`, `states`.
"""
