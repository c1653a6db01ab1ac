"""An Airflow DAG that re-measures suspected regressions."""

from tipcflow_operators.confirm.dag import confirm_dag

dag = confirm_dag()
