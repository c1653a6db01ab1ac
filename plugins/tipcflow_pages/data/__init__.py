"""What the pages read: one run, its files, its events, its DAG run; nothing is written.

Public: `audit_log`, `dag_run`, `data`, `files`, `live`.
"""
