"""Queries for pages, history and baselines.

Public: `coverage`, `operation`, `pages`, `readonly`, `states`.
"""
