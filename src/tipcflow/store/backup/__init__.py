"""Backups: all rows of a metrics database in one SQLite file, from and to either kind of database.

Public: `restore`, `save`.
"""
