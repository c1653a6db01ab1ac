"""Client of Airflow's REST API; needs only an address and a login."""

from tipcflow.airflow_api.certification import RunFacts
from tipcflow.airflow_api.client import Airflow
from tipcflow.airflow_api.models import Dag, DagRun, Health, RunState, TaskInstance

__all__ = ["Airflow", "Dag", "DagRun", "Health", "RunFacts", "RunState", "TaskInstance"]
