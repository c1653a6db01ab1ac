"""An Airflow DAG that searches for the commit that made a chain worse."""

from tipcflow_operators.bisect.dag import bisect_dag

dag = bisect_dag()
