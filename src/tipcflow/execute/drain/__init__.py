"""Nodes that get no runs: slower than before, or drained by users.

Public: `drains`, `manual`.
"""
