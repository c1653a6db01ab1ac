"""Temporary Airflow on this machine: `stack.airflow_stack`."""
