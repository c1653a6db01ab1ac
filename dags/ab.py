"""An Airflow DAG that compares two versions of a suite or framework."""

from tipcflow_operators.ab.dag import ab_dag

dag = ab_dag()
