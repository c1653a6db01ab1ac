"""Chains as DAGs: one graph, drawn from the catalog without any node being asked."""

from collections.abc import Mapping, Sequence
from copy import copy
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, BaseOperator, Param, TaskGroup, get_parsing_context
from airflow.sdk.definitions.mappedoperator import MappedOperator
from airflow.sdk.definitions.param import ParamsDict

from operators.chain import docs
from operators.chain.catalog import Chain, chain_of, chains_of, group_ids
from operators.chain.params import allowed, chain_params, run_params
from operators.limits import SHORT, longest
from operators.tasks.phases import (
    AcquireOperator,
    CollectOperator,
    JudgeOperator,
    ReleaseOperator,
    ResolveOperator,
)
from operators.tasks.step import StepOperator
from operators.tasks.verdict import VerdictOperator
from tipcflow.config.settings import settings

CERTIFY = "certify"
# A task that dies with its worker is tried again and finds what it had begun. What a task *says* is final.
DEFAULTS = {"retries": 2, "retry_delay": timedelta(seconds=10), "owner": "tipcflow"}
# The first task of every run.
RESOLVE: dict[str, Any] = {
    "task_id": "resolve",
    "doc_md": docs.TASKS["resolve"],
    "execution_timeout": SHORT,
}
_Task = BaseOperator | MappedOperator
_NODE_NAME = "{{ task.node }}"
_LONGEST_TAG = 100


def chain_dags(suite: str, config_dir: Path | None = None) -> dict[str, DAG]:
    """DAG id -> DAG of every chain of a suite; of one only, when Airflow parses the file for one task."""
    folder = config_dir or settings().config_dir
    if wanted := get_parsing_context().dag_id:
        chain = chain_of(suite, folder, wanted)
        chains = [chain] if chain else []
    else:
        chains = chains_of(suite, folder)
    params, limit = run_params(folder), longest(folder)
    return {chain.dag_id: chain_dag(chain, params, limit) for chain in chains}


def chain_dag(chain: Chain, params: Mapping[str, Param], limit: timedelta | None = None) -> DAG:
    """The DAG of one chain, with its own copy of the params.

    Args:
        limit: how long a task may hold a worker; None for what the policies of `settings().config_dir` need.
    """
    dag = DAG(
        dag_id=chain.dag_id,
        dag_display_name=chain.name,
        description=f"Train, export and infer {chain.path.parent.name} of {chain.suite}, and judge it",
        doc_md=docs.chain_doc(chain.name, chain.params_file, chain.variants),
        schedule=None,
        catchup=False,
        max_active_runs=16,
        # Without a schedule a pause would only keep runs that somebody asked for.
        is_paused_upon_creation=False,
        tags=[tag[:_LONGEST_TAG] for tag in ("tipcflow", chain.suite, chain.path.parent.name)],
        default_args=defaults(limit),
    )
    with dag:
        resolve = ResolveOperator(
            suite=chain.suite, params_file=chain.params_file, allowed=allowed(chain=True), **RESOLVE
        )
        tasks(resolve, chain.variants)
    give(dag, params)
    return dag


def defaults(limit: timedelta | None = None) -> dict[str, Any]:
    """What all tasks of a run's DAG have."""
    return {**DEFAULTS, "execution_timeout": limit or longest(settings().config_dir)}


def certify_dag(config_dir: Path | None = None) -> DAG:
    """The DAG for params files that have none of their own."""
    folder = config_dir or settings().config_dir
    dag = DAG(
        dag_id=CERTIFY,
        description="Train, export and infer the model of any params file, and judge it",
        doc_md=docs.CERTIFY_DOC,
        schedule=None,
        catchup=False,
        max_active_runs=16,
        # Without a schedule a pause would only keep runs that somebody asked for.
        is_paused_upon_creation=False,
        tags=["tipcflow"],
        default_args=defaults(longest(folder)),
    )
    with dag:
        tasks(ResolveOperator(suite="", params_file="", allowed=allowed(chain=False), **RESOLVE), ())
    give(dag, {**chain_params(folder), **run_params(folder)})
    return dag


def give(dag: DAG, params: Mapping[str, Param]) -> None:
    """Give a DAG its params when it has its tasks.

    Airflow copies the params that a DAG has into every task that is made, and validates and serialises each copy;
    a task is told those of its DAG anyway.
    """
    dag.params = ParamsDict({name: copy(param) for name, param in params.items()})


def tasks(resolve: ResolveOperator, variants: Sequence[str]) -> None:
    """resolve -> acquire -> prepare -> groups, one after the other -> collect -> release -> judge -> verdict."""
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
    # Also directly: who clears only failed tasks leaves those between as they were.
    last >> verdict


def _group(
    resolve: BaseOperator, after: list[_Task], number: int, group: str, variants: Sequence[str]
) -> list[_Task]:
    """One variant: train -> eval -> export -> infer_cpu and infer_gpu; the tasks that come last.

    Only one variant runs at a time: two at once on the same nodes would measure neither. A later one runs also
    when an earlier one failed.
    """

    def step(kind: str) -> StepOperator:
        return StepOperator(
            task_id=kind,
            kind=kind,
            group=number,
            variants=variants,
            # Some of its steps may be fine where others are not: the database decides.
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
