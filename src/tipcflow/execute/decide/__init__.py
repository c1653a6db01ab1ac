"""Decisions of users about alerts, baselines and quarantines, as the CLI, the pages and Airflow's DAGs store them.

Public: `baselines`, `decisions`, `quarantines`.
"""
