"""The metrics of a chain by its stored runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stories import INFER, T0, a_run, losses, open_store, record_run

from tipcflow.domain import ConfigError, Status
from tipcflow.execute.ab.metrics import check_names
from tipcflow.execute.bisection.subject import Subject
from tipcflow.execute.chain.measured import ChainMetrics, chain_metrics
from tipcflow.store import Store

CHAIN, MODE = a_run().chain, a_run().mode


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "t.db") as opened:
        yield opened


def known(store: Store) -> ChainMetrics:
    return chain_metrics(store, CHAIN, MODE, "spec")


def put(store: Store, number: int, status: Status = Status.PASS, **fields: object) -> None:
    run = record_run(store, a_run(f"run-{number}", created_at=T0 + 100 * number, **fields), status=status)
    leg = {"step": INFER, "leg": "cpu_onednn_on"}
    store.measurements.add(losses(run.id, [3.0], metric="inference_time", unit="ms", **leg))
    store.measurements.add(losses(run.id, [3.0], metric="data_num"))


def test_without_a_complete_run_every_metric_is_accepted(store: Store) -> None:
    put(store, 1, Status.FAILED)
    put(store, 2, mode="whole_train_whole_infer")
    assert known(store).runs == 0
    Subject(CHAIN, MODE, "spec", "ips").check(known(store))
    check_names(["ips"], known(store))


def test_metrics_with_a_direction_are_known(store: Store) -> None:
    put(store, 1)
    put(store, 2)
    found = known(store)
    assert (found.where, found.runs) == (f"{CHAIN} in {MODE}", 2)
    assert {"loss", "inference_time"} <= {key.metric for key in found.keys}
    assert "data_num" not in {key.metric for key in found.keys}
    Subject(CHAIN, MODE, "spec", "failure").check(found)
    Subject(CHAIN, MODE, "spec", "loss", "train").check(found)
    Subject(CHAIN, MODE, "spec", "inference_time", "infer_cpu", "cpu_onednn_on").check(found)
    check_names(["loss", "inference_time"], found)


@pytest.mark.parametrize(
    ("name", "step", "message"),
    [
        (
            "seen",
            "",
            "METRIC: neither a lower nor a higher value of this metric is better; found 'seen'; "
            "expected failure, or one of inference_time, loss",
        ),
        (
            "ips",
            "",
            f"METRIC: none of the 2 newest runs of {CHAIN} in {MODE} measured it; found 'ips'; "
            "expected failure, or one of inference_time, loss",
        ),
        (
            "loss",
            "eval",
            f"METRIC: none of the 2 newest runs of {CHAIN} in {MODE} measured it; found 'loss eval'; "
            "expected --step and --leg that name one of norm_train_cpu/train",
        ),
    ],
)
def test_an_unknown_subject_is_refused_with_known_metrics(
    store: Store, name: str, step: str, message: str
) -> None:
    put(store, 1)
    put(store, 2)
    with pytest.raises(ConfigError) as error:
        Subject(CHAIN, MODE, "spec", name, step).check(known(store))
    assert str(error.value) == message


def test_an_unknown_metric_of_a_comparison_is_refused(store: Store) -> None:
    put(store, 1)
    with pytest.raises(ConfigError) as error:
        check_names(["loss", "ips"], known(store))
    assert str(error.value) == (
        f"--metric: the newest run of {CHAIN} in {MODE} did not measure it; found 'ips'; "
        "expected one of inference_time, loss"
    )


def test_the_accuracy_of_evaluations_has_a_direction() -> None:
    Subject(CHAIN, MODE, "spec", "eval.top1").check(ChainMetrics())
