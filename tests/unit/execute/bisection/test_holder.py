"""The run with which a bisection stores its result must have the problem that is searched."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import a_run, losses, open_store, record_run

from tipcflow.domain import CheckResult, ConfigError, Status
from tipcflow.execute.alerts.track import track_alerts
from tipcflow.execute.bisection.holder import check_holder
from tipcflow.execute.bisection.subject import FAILURE, Subject
from tipcflow.store import Store

CHAIN = "toy/a/train"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "tipcflow.db") as opened:
        yield opened


def subject(name: str = "batch_cost", **fields: str) -> Subject:
    known = {"chain": CHAIN, "mode": a_run().mode, "compat": "spec"}
    return Subject(**{**known, **fields}, name=name)


def measured(store: Store, status: Status = Status.PASS, **fields: Any) -> str:
    """A run of the chain with a batch_cost."""
    run = record_run(store, a_run("bad", chain=CHAIN, **fields), status=status)
    store.measurements.add(losses(run.id, [1.2], metric="batch_cost", unit="s"))
    return run.id


def regression(store: Store) -> str:
    """A run with an alert about its batch_cost."""
    run = record_run(store, a_run("bad", chain=CHAIN, environment="cpu"), status=Status.REGRESSION)
    slower = CheckResult(
        check="speed.batch_cost", status=Status.REGRESSION, reason="slower", step="norm_train_cpu/train",
        metric="batch_cost", values={"ratio": 1.2},
    )  # fmt: skip
    store.checks.replace(run.id, [slower])
    assert track_alerts(store, run, [slower])
    return run.id


@pytest.mark.parametrize("fields", [{}, {"step": "train"}, {"step": "norm_train_cpu/train"}])
def test_run_with_the_problem_is_accepted(store: Store, fields: dict[str, str]) -> None:
    check_holder(store, regression(store), subject(**fields), a_run().cluster)


def test_run_without_an_alert_is_accepted_after_measuring_the_metric(store: Store) -> None:
    check_holder(store, measured(store), subject(), a_run().cluster)


def test_failed_run_is_accepted_for_a_failure(store: Store) -> None:
    check_holder(store, measured(store, Status.FAILED), subject(FAILURE), a_run().cluster)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"chain": "toy/b/train"},
            "run bad has another chain than the search; found 'toy/a/train'; expected toy/b",
        ),
        ({"mode": "whole_infer"}, "run bad has another mode than the search; found 'lite_train_lite_infer'"),
        ({"compat": "bash"}, "run bad has another semantics than the search; found 'spec'; expected bash"),
        (
            {"name": "loss"},
            "run bad has an alert about other metrics; found 'loss'; expected one of batch_cost norm",
        ),
        ({"step": "eval"}, "run bad has an alert about other metrics; found 'batch_cost eval'; expected one of"),
        ({"leg": "cpu"}, "run bad has an alert about other metrics; found 'batch_cost cpu'; expected one of"),
        ({"name": FAILURE}, "run bad did not fail; found 'regression'; expected failed"),
    ],
)
def test_run_with_another_problem_is_one_error(store: Store, fields: dict[str, str], words: str) -> None:
    run = regression(store)
    with pytest.raises(ConfigError) as error:
        check_holder(store, run, subject(**fields), a_run().cluster)
    assert words in error.value.message
    assert error.value.key == "run"


def test_run_of_another_cluster_is_one_error(store: Store) -> None:
    with pytest.raises(ConfigError, match="run bad has another cluster than the search"):
        check_holder(store, measured(store), subject(), "other")


def test_run_that_did_not_measure_the_metric_is_one_error(store: Store) -> None:
    with pytest.raises(
        ConfigError, match=r"run bad did not measure this metric; found 'ips'; expected one of batch"
    ):
        check_holder(store, measured(store), subject("ips"), a_run().cluster)
