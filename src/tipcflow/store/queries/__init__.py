"""Queries for pages, history and baselines."""
