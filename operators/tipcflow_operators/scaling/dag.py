"""DAG `scaling`: measures how a training scales over nodes and devices."""

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG

from tipcflow.config.settings import settings
from tipcflow_operators.limits import SHORT
from tipcflow_operators.scaling.check import CHECK, CheckOperator
from tipcflow_operators.scaling.docs import DOC, TASKS
from tipcflow_operators.scaling.measure import MEASURE, MeasureOperator
from tipcflow_operators.scaling.params import scaling_params
from tipcflow_operators.scaling.result import ResultOperator

SCALING_DAG = "scaling"
# A task that dies with its worker is retried and resumes its work. A failure that a task reports is final.
_DEFAULTS = {"retries": 2, "retry_delay": timedelta(seconds=10), "owner": "tipcflow", "execution_timeout": SHORT}


def scaling_dag(config_dir: Path | None = None) -> DAG:
    """Return the DAG: check -> measure, mapped over the topologies -> result."""
    dag = DAG(
        dag_id=SCALING_DAG,
        description="Measure how a training scales over nodes and devices",
        doc_md=DOC,
        schedule=None,
        catchup=False,
        max_active_runs=16,
        # The DAG has no schedule; a paused DAG would only hold back triggered runs.
        is_paused_upon_creation=False,
        tags=["tipcflow", "compare"],
        params=scaling_params(config_dir or settings().config_dir),
        default_args=_DEFAULTS,
    )
    with dag:
        check = CheckOperator(task_id=CHECK, doc_md=TASKS[CHECK])
        measure = MeasureOperator.partial(
            task_id=MEASURE, map_index_template="{{ task.case['topology'] }}", doc_md=TASKS[MEASURE]
        ).expand(case=check.output)
        result = ResultOperator(task_id="result", trigger_rule="all_done", doc_md=TASKS["result"])
        check >> measure >> result
    return dag
