"""Client of Airflow's REST API; needs only an address and a login.

Public: `__all__`, `node_connections`.
"""

from tipcflow.airflow_api.client import Airflow
from tipcflow.airflow_api.models import Dag, DagRun, Health, RunState, TaskInstance
from tipcflow.report.api import RunFacts

__all__ = ["Airflow", "Dag", "DagRun", "Health", "RunFacts", "RunState", "TaskInstance"]
