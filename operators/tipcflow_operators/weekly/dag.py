"""DAG `weekly`: certifies all chains on the full dataset, once a week."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, CronTriggerTimetable, Param

from tipcflow.config.settings import settings
from tipcflow_operators.airflow.child_runs import CERTIFY
from tipcflow_operators.chain.params import run_params
from tipcflow_operators.manual_dag import RESUMING
from tipcflow_operators.weekly.certify import CertifyOperator
from tipcflow_operators.weekly.docs import DOC, TASKS
from tipcflow_operators.weekly.select import CHAIN_RUN_PARAMS, CHAINS, SELECT, SelectOperator
from tipcflow_operators.weekly.summary import SummaryOperator

WEEKLY = "weekly"
MODE = "whole_train_whole_infer"
POLICY = "weekly"


def weekly_dag(config_dir: Path | None = None) -> DAG:
    """Return the DAG: select -> certify, mapped over the chains -> summary."""
    known = settings()
    dag = DAG(
        dag_id=WEEKLY,
        description="Certify all chains on the full dataset",
        doc_md=DOC,
        # After unpausing, the first run is at the next scheduled time.
        schedule=CronTriggerTimetable(known.weekly_cron, timezone="UTC", run_immediately=timedelta(0)),
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=True,
        tags=["tipcflow", "schedule"],
        params=weekly_params(config_dir or known.config_dir),
        default_args=RESUMING,
    )
    with dag:
        select = SelectOperator(task_id=SELECT, doc_md=TASKS[SELECT])
        certify = CertifyOperator.partial(
            task_id=CERTIFY, map_index_template="{{ task.chain }}", doc_md=TASKS[CERTIFY]
        ).expand(chain=select.output)
        summary = SummaryOperator(task_id="summary", trigger_rule="all_done", doc_md=TASKS["summary"])
        select >> certify >> summary
    return dag


def weekly_params(config_dir: Path) -> dict[str, Param]:
    """Return the params: the chains, and the params of each chain's run."""
    own: dict[str, Any] = {"mode": MODE, "policy": POLICY}
    chain_params = {name: param for name, param in run_params(config_dir).items() if name in CHAIN_RUN_PARAMS}
    chains = Param(
        ["*"],
        type="array",
        items={"type": "string", "minLength": 1},
        minItems=1,
        title="Chains",
        description="Globs of chain names `<suite>/<model>/<file>`, one per line; `*` selects all.",
    )
    return {
        CHAINS: chains,
        **{
            name: Param(own[name], param.description, schema=param.schema) if name in own else param
            for name, param in chain_params.items()
        },
    }
