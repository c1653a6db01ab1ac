"""Airflow DAG `weekly`: certifies all chains on full data, once a week."""

from operators.weekly.dag import weekly_dag

dag = weekly_dag()
