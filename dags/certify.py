"""An Airflow DAG that certifies any params file, with or without its own DAG."""

from tipcflow_operators.chain.dag import certify_dag

dag = certify_dag()
