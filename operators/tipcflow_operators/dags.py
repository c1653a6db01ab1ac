"""All DAGs of a deployment, for a DAGs folder with one file."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from airflow.sdk import DAG, get_parsing_context

from tipcflow.config.access.roles import DECISION_DAGS
from tipcflow.config.settings import settings
from tipcflow_operators.ab.dag import AB_DAG, ab_dag
from tipcflow_operators.bisect.dag import BISECT_DAG, bisect_dag
from tipcflow_operators.chain.dag import CERTIFY, certify_dag, chain_dags
from tipcflow_operators.confirm.dag import confirm_dag
from tipcflow_operators.decide.dag import decide_dag
from tipcflow_operators.maintenance.dag import MAINTENANCE, maintenance_dag
from tipcflow_operators.pull_request.dag import PULL_REQUEST, pull_request_dag
from tipcflow_operators.scaling.dag import SCALING_DAG, scaling_dag
from tipcflow_operators.tasks.request_confirm import DAG_ID as CONFIRM
from tipcflow_operators.weekly.dag import WEEKLY, weekly_dag


def all_dags(config_dir: Path | None = None) -> dict[str, DAG]:
    """Return the DAGs that are not of a chain (`certify`, `pull_request`, …) and one per chain, by DAG ID.

    The chains are the params files in `<config_dir>/chains/<suite>/<model>/`. When Airflow parses the file for one
    task, only the DAG of that task is returned.

    Args:
        config_dir: folder of the configuration; None for TIPCFLOW_CONFIG_DIR.

    Raises:
        ConfigError: two chains of a suite have the same DAG ID.
    """
    folder = config_dir or settings().config_dir
    own: dict[str, Callable[[], DAG]] = {
        AB_DAG: lambda: ab_dag(folder),
        BISECT_DAG: lambda: bisect_dag(folder),
        CERTIFY: lambda: certify_dag(folder),
        CONFIRM: confirm_dag,
        **{dag_id: partial(decide_dag, dag_id) for dag_id in DECISION_DAGS},
        MAINTENANCE: maintenance_dag,
        PULL_REQUEST: lambda: pull_request_dag(folder),
        SCALING_DAG: lambda: scaling_dag(folder),
        WEEKLY: lambda: weekly_dag(folder),
    }
    wanted = get_parsing_context().dag_id
    if wanted in own:
        return {wanted: own[wanted]()}
    dags = {} if wanted else {dag_id: make() for dag_id, make in own.items()}
    for suite in _suites(folder / "chains"):
        dags |= chain_dags(suite, folder)
        if wanted in dags:
            break
    return dags


def _suites(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
