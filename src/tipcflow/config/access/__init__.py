"""Roles of users, and the file that gives roles to users.

Public: `roles`, `users`.
"""
