"""A run, its attempts, jobs and members, how they ended, and failure classes.

Public: `failure`, `job_event`, `run`, `scaling`.
"""
