"""An Airflow DAG that certifies all chains on the full dataset once a week."""

from tipcflow_operators.weekly.dag import weekly_dag

dag = weekly_dag()
