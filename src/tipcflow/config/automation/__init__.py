"""What tipcflow may do without a user: rules in policies.

Public: `rules`.
"""
