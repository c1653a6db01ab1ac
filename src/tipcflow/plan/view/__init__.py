"""Plan views: tables and differences.

Public: `dialect_keys`, `diff`.
"""
