"""YAML text as plain data: strict for files of users, fast for shipped files.

Public: `shipped`.
"""
