"""Attempts of commits on GitHub, approvals, and the outgoing messages.

Public: `attempts`, `decision`, `messages`.
"""
