"""Dialects by name, and the check of dialects of users.

Public: `names`.
"""
