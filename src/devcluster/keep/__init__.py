"""Local nodes and a local Airflow that stay after the command that started them.

Public: `connect`, `control`, `nodes`, `record`.
"""
