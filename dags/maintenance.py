"""Airflow DAG `maintenance`: hourly cleanup of a deployment."""

from operators.maintenance.dag import maintenance_dag

dag = maintenance_dag()
