"""An Airflow DAG that certifies any params file, also one that has no DAG of its own."""

from operators.chain.dag import certify_dag

dag = certify_dag()
