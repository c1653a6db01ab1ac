"""DAG `scaling`: measures how a training scales over nodes and devices."""

from pathlib import Path

from airflow.sdk import DAG

from tipcflow.config.settings import settings
from tipcflow_operators.manual_dag import manual_dag
from tipcflow_operators.scaling.check import CHECK, CheckOperator
from tipcflow_operators.scaling.docs import DOC, TASKS
from tipcflow_operators.scaling.measure import MEASURE, MeasureOperator
from tipcflow_operators.scaling.params import scaling_params
from tipcflow_operators.scaling.result import ResultOperator

SCALING_DAG = "scaling"


def scaling_dag(config_dir: Path | None = None) -> DAG:
    """Return the DAG: check -> measure, mapped over the topologies -> result."""
    dag = manual_dag(
        SCALING_DAG,
        description="Measure how a training scales over nodes and devices",
        doc=DOC,
        params=scaling_params(config_dir or settings().config_dir),
    )
    with dag:
        check = CheckOperator(task_id=CHECK, doc_md=TASKS[CHECK])
        measure = MeasureOperator.partial(
            task_id=MEASURE, map_index_template="{{ task.case['topology'] }}", doc_md=TASKS[MEASURE]
        ).expand(case=check.output)
        result = ResultOperator(task_id="result", trigger_rule="all_done", doc_md=TASKS["result"])
        check >> measure >> result
    return dag
