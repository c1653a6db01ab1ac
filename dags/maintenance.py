"""An Airflow DAG that cleans up a deployment every hour."""

from operators.maintenance.dag import maintenance_dag

dag = maintenance_dag()
