"""Temporary Airflow on this machine: `stack.airflow_stack`.

Public: `connections`, `health`, `home`, `stack`, `state`.
"""
