"""An Airflow DAG that certifies all chains on whole data once a week."""

from tipcflow_operators.weekly.dag import weekly_dag

dag = weekly_dag()
