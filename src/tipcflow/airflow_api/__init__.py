"""Airflow over its REST API: what any process with an address and a login can ask and tell."""

from tipcflow.airflow_api.certification import RunFacts
from tipcflow.airflow_api.client import Airflow
from tipcflow.airflow_api.models import Dag, DagRun, Health, RunState, TaskInstance

__all__ = ["Airflow", "Dag", "DagRun", "Health", "RunFacts", "RunState", "TaskInstance"]
