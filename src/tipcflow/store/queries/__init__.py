"""Queries for pages, history and baselines.

Public: `alerts`, `coverage`, `pages`, `readonly`, `states`.
"""
