"""An Airflow DAG that measures once more what looks like a regression, before it is one."""

from operators.confirm.dag import confirm_dag

dag = confirm_dag()
