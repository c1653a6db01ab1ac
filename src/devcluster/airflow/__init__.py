"""Temporary Airflow on this machine: `stack.airflow_stack`.

Public: `health`, `home`, `stack`, `state`.
"""
