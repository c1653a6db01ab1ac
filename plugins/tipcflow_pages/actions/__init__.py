"""Routes that change something: each checks the user's role, and Airflow's audit log has an entry of each.

Public: `decide`, `stop`.
"""
