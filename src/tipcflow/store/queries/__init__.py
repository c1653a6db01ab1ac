"""Queries for pages, history and baselines.

Public: `pages`, `readonly`.
"""
