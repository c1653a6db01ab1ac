"""Logins with roles: an auth manager of Airflow, the permissions of each role, and the command that stores both.

Public: nothing.
"""
