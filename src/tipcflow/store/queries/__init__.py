"""Queries for pages, history and baselines.

Public: `coverage`, `pages`, `readonly`, `states`.
"""
