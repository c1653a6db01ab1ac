"""Thin adapters from `tipcflow.execute` to Airflow's operators and triggers. Connections come from Airflow.

Public: nothing.
"""
