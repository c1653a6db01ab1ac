"""The trigger of a DAG run: users choose the IDs of their DAG runs, but not the triggers that change rules."""

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.utils.types import DagRunType

from tipcflow.domain import ConfigError
from tipcflow.domain.triggers import RESERVED, SIDE_RUNS
from tipcflow_operators.tasks.started_by import trigger_of, trigger_or_unknown


def dag_run(run_id: str, run_type: Any = DagRunType.MANUAL) -> Any:
    return SimpleNamespace(dag_id="clas.m.f", run_id=run_id, run_type=run_type)


@pytest.mark.parametrize(
    ("run", "trigger"),
    [
        ("manual__2026-11-21T20:00:00+00:00", "manual"),
        ("scheduled__2026-11-21", "scheduled"),
        ("ci__", "ci"),
        ("something_else", "airflow"),
        ("confirm", "airflow"),
        ("", "airflow"),
    ],
)
def test_run_id_shows_the_trigger(run: str, trigger: str) -> None:
    assert trigger_of(dag_run(run)) == trigger
    assert trigger_or_unknown(dag_run(run)) == trigger


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_reserved_trigger_is_only_of_tasks(word: str) -> None:
    run = f"{word}__scheduled__2026-11-21"
    assert trigger_of(dag_run(run, DagRunType.OPERATOR_TRIGGERED)) == word
    assert trigger_of(dag_run(run, "operator_triggered")) == word, "the task SDK has an enumeration of its own"
    others = [kind for kind in DagRunType if kind is not DagRunType.OPERATOR_TRIGGERED]
    for kind in others:
        with pytest.raises(ConfigError) as caught:
            trigger_of(dag_run(run, kind))
        assert str(caught.value) == (
            f"dag_run_id: {word}__ is reserved for DAG runs that tasks of tipcflow start; found '{run}'; "
            "expected another first part, such as ci__, or no ID"
        )
        assert trigger_or_unknown(dag_run(run, kind)) == "airflow"


def test_all_side_runs_are_reserved() -> None:
    assert set(SIDE_RUNS) < RESERVED
