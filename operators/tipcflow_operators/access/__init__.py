"""Logins with roles: an auth manager of Airflow, the permissions of each role, and the command that stores both.

Also the logins on nodes that are in a file.

Public: nothing.
"""
