"""GitHub: webhook deliveries, commands in comments, decisions about runs, reports, and the client of its API.

Public: nothing.
"""
