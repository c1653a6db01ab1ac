"""Alerts: what a judged run means for the alerts of its chain, their groups, and decisions of users.

Public: `bisected`, `decide`.
"""
