"""Planner input: groups, options, variants and legs of a params file.

Public: `files`.
"""
