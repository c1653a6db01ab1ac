"""Queries for pages, history and baselines.

Public: `alerts`, `coverage`, `matrix`, `pages`, `readonly`, `states`.
"""
