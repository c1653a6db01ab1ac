"""Airflow DAGs that store decisions of users about alerts, baselines and quarantines."""

from tipcflow_operators.decide.dag import decide_dags

globals().update(decide_dags())
