"""Plan views: tables and differences.

Public: `diff`.
"""
