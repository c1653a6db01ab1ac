"""DAGs of chains, built from the catalog without contacting nodes."""

from collections.abc import Mapping, Sequence
from copy import copy
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, BaseOperator, Param, TaskGroup, get_parsing_context

from tipcflow.config.settings import settings
from tipcflow_operators.airflow.internals import MappedOperator, ParamsDict
from tipcflow_operators.chain import docs
from tipcflow_operators.chain.catalog import Chain, chain_of, chains_of, group_ids
from tipcflow_operators.chain.params import allowed, chain_params, run_params
from tipcflow_operators.limits import SHORT, longest
from tipcflow_operators.tasks.phases import (
    AcquireOperator,
    CollectOperator,
    JudgeOperator,
    ReleaseOperator,
    ResolveOperator,
)
from tipcflow_operators.tasks.step import StepOperator
from tipcflow_operators.tasks.verdict import VerdictOperator

CERTIFY = "certify"
# A task that dies with its worker is retried and resumes its work. A failure that a task reports is final.
DEFAULTS = {"retries": 2, "retry_delay": timedelta(seconds=10), "owner": "tipcflow"}
# First task of every run.
RESOLVE: dict[str, Any] = {
    "task_id": "resolve",
    "doc_md": docs.TASKS["resolve"],
    "execution_timeout": SHORT,
}
_Task = BaseOperator | MappedOperator
_NODE_NAME = "{{ task.node }}"
_LONGEST_TAG = 100


def chain_dags(suite: str, config_dir: Path | None = None) -> dict[str, DAG]:
    """Return the DAGs of a suite's chains by DAG ID; only one when Airflow parses the file for one task."""
    folder = config_dir or settings().config_dir
    if wanted := get_parsing_context().dag_id:
        chain = chain_of(suite, folder, wanted)
        chains = [chain] if chain else []
    else:
        chains = chains_of(suite, folder)
    params, limit = run_params(folder), longest(folder)
    return {chain.dag_id: chain_dag(chain, params, limit) for chain in chains}


def chain_dag(chain: Chain, params: Mapping[str, Param], limit: timedelta | None = None) -> DAG:
    """Return the DAG of one chain, with its own copy of the params.

    Args:
        limit: how long a task may occupy a worker; None for the longest policy in `settings().config_dir`.
    """
    dag = DAG(
        dag_id=chain.dag_id,
        dag_display_name=chain.name,
        description=f"Train, export, infer and check {chain.path.parent.name} of suite {chain.suite}",
        doc_md=docs.chain_doc(chain.name, chain.params_file, chain.variants, chain.dialects.problem),
        schedule=None,
        catchup=False,
        max_active_runs=16,
        # The DAG has no schedule; a paused DAG would only hold back triggered runs.
        is_paused_upon_creation=False,
        tags=[tag[:_LONGEST_TAG] for tag in ("tipcflow", "chain", chain.suite, chain.path.parent.name)],
        default_args=defaults(limit),
    )
    with dag:
        resolve = ResolveOperator(
            suite=chain.suite, params_file=chain.params_file, allowed=allowed(chain=True), **RESOLVE
        )
        tasks(resolve, chain.variants)
    set_params(dag, params)
    return dag


def defaults(limit: timedelta | None = None) -> dict[str, Any]:
    """Default arguments of all tasks of a run's DAG."""
    return {**DEFAULTS, "execution_timeout": limit or longest(settings().config_dir)}


def certify_dag(config_dir: Path | None = None) -> DAG:
    """Return the DAG for params files without a DAG of their own."""
    folder = config_dir or settings().config_dir
    dag = DAG(
        dag_id=CERTIFY,
        description="Train, export, infer and check the model of any params file",
        doc_md=docs.CERTIFY_DOC,
        schedule=None,
        catchup=False,
        max_active_runs=16,
        # The DAG has no schedule; a paused DAG would only hold back triggered runs.
        is_paused_upon_creation=False,
        tags=["tipcflow", "chain"],
        default_args=defaults(longest(folder)),
    )
    with dag:
        tasks(ResolveOperator(suite="", params_file="", allowed=allowed(chain=False), **RESOLVE), ())
    set_params(dag, {**chain_params(folder), **run_params(folder)})
    return dag


def set_params(dag: DAG, params: Mapping[str, Param]) -> None:
    """Set a DAG's params after its tasks have been created.

    Airflow copies the DAG's params into every task created later, and validates and serializes each copy. Tasks
    receive the DAG's params in any case.
    """
    dag.params = ParamsDict({name: copy(param) for name, param in params.items()})


def tasks(resolve: ResolveOperator, variants: Sequence[str]) -> None:
    """Add resolve -> acquire -> prepare -> groups in sequence -> collect -> release -> judge -> verdict."""
    acquire = AcquireOperator(task_id="acquire", doc_md=docs.TASKS["acquire"])
    prepare = StepOperator.partial(
        task_id="prepare", kind="prepare", map_index_template=_NODE_NAME, doc_md=docs.TASKS["prepare"]
    ).expand(node=resolve.output)
    resolve >> acquire >> prepare
    last: list[_Task] = [prepare]
    for number, group in enumerate(group_ids(variants or ("variant",))):
        last = _group(resolve, last, number, group, variants)
    collect = CollectOperator(task_id="collect", doc_md=docs.TASKS["collect"]).as_teardown()
    release = ReleaseOperator(task_id="release", doc_md=docs.TASKS["release"]).as_teardown()
    judge = JudgeOperator(task_id="judge", doc_md=docs.TASKS["judge"], execution_timeout=SHORT)
    judge.as_teardown()
    verdict = VerdictOperator(
        task_id="verdict", doc_md=docs.TASKS["verdict"], execution_timeout=SHORT
    ).as_teardown(on_failure_fail_dagrun=True)
    last >> collect >> release >> judge >> verdict
    # Direct edges, too: clearing only failed tasks leaves the tasks between as they were.
    last >> verdict


def _group(
    resolve: BaseOperator, after: list[_Task], number: int, group: str, variants: Sequence[str]
) -> list[_Task]:
    """Add the tasks of one variant: train -> eval -> export -> infer_cpu and infer_gpu. Return the last ones.

    Variants run one at a time, because concurrent variants on the same nodes would disturb each other's
    measurements. A variant runs even if an earlier one failed.
    """

    def step(kind: str) -> StepOperator:
        """Return the task of a kind of step."""
        return StepOperator(
            task_id=kind,
            kind=kind,
            group=number,
            variants=variants,
            # Some steps of a group may succeed where others fail: the database decides.
            trigger_rule="all_done",
            doc_md=docs.TASKS[kind],
        )

    with TaskGroup(group_id=group, tooltip=variants[number] if variants else ""):
        train = StepOperator.partial(
            task_id="train",
            kind="train",
            group=number,
            variants=variants,
            trigger_rule="all_done" if number else "none_failed",
            map_index_template=_NODE_NAME,
            doc_md=docs.TASKS["train"],
        ).expand(node=resolve.output)
        evaluate, export, infer_cpu, infer_gpu = (step(k) for k in ("eval", "export", "infer_cpu", "infer_gpu"))
        train >> evaluate >> export >> [infer_cpu, infer_gpu]
    after >> train
    return [infer_cpu, infer_gpu]
