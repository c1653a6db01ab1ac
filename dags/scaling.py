"""An Airflow DAG that measures how a training scales over nodes and devices."""

from tipcflow_operators.scaling.dag import scaling_dag

dag = scaling_dag()
