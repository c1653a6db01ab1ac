"""Airflow over its REST API: what any process with an address and a login can ask and tell."""

from tipcflow.rest.certification import RunFacts
from tipcflow.rest.client import Airflow
from tipcflow.rest.models import Dag, DagRun, Health, RunState, TaskInstance

__all__ = ["Airflow", "Dag", "DagRun", "Health", "RunFacts", "RunState", "TaskInstance"]
