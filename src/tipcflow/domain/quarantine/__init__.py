"""Quarantine of a failure of a check: what it covers, and when it ends.

Public: `entry`, `signature`.
"""
