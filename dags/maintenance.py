"""An Airflow DAG that keeps a deployment tidy: sweeps, every hour."""

from operators.maintenance.dag import maintenance_dag

dag = maintenance_dag()
