"""An Airflow DAG that cleans up a deployment every hour."""

from tipcflow_operators.maintenance.dag import maintenance_dag

dag = maintenance_dag()
