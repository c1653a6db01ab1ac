"""An Airflow DAG that keeps a deployment tidy: sweeps, every hour."""

from operators.maintenance import maintenance_dag

dag = maintenance_dag()
