"""Airflow DAG `confirm`: re-measures a suspected regression before the verdict."""

from operators.confirm.dag import confirm_dag

dag = confirm_dag()
