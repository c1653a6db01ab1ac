"""Airflow DAG `certify`: certifies any params file, including one without a DAG of its own."""

from operators.chain.dag import certify_dag

dag = certify_dag()
