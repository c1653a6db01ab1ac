"""A run, its attempts, jobs and members, how they ended, failure classes, and notices.

Public: `allocation_wait`, `bisection`, `drains`, `failure`, `job_event`, `judged`, `kept_files`, `names`,
`notices`, `run`, `scaling`.
"""
