"""An Airflow DAG that certifies pull requests on GitHub."""

from tipcflow_operators.pull_request.dag import pull_request_dag

dag = pull_request_dag()
