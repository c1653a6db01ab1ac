"""DAG `ab`: compares two versions of a suite or framework."""

from pathlib import Path

from airflow.sdk import DAG

from tipcflow.config.settings import settings
from tipcflow_operators.ab.check import CHECK, CheckOperator
from tipcflow_operators.ab.compare import COMPARE, CompareOperator
from tipcflow_operators.ab.docs import DOC, TASKS
from tipcflow_operators.ab.params import ab_params
from tipcflow_operators.manual_dag import manual_dag
from tipcflow_operators.tasks.result_verdict import ResultVerdictOperator

AB_DAG = "ab"


def ab_dag(config_dir: Path | None = None) -> DAG:
    """Return the DAG: check -> compare -> verdict."""
    dag = manual_dag(
        AB_DAG,
        description="Compare two versions of a suite or framework by pairs of runs",
        doc=DOC,
        params=ab_params(config_dir or settings().config_dir),
    )
    with dag:
        check = CheckOperator(task_id=CHECK, doc_md=TASKS[CHECK])
        compare = CompareOperator(task_id=COMPARE, doc_md=TASKS[COMPARE])
        verdict = ResultVerdictOperator(task_id="verdict", of=COMPARE, doc_md=TASKS["verdict"])
        check >> compare >> verdict
    return dag
