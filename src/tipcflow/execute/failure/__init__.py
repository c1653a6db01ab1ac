"""Why an attempt failed: log diagnosis, root cause, failure class, status reason.

Public: `dependencies`.
"""
