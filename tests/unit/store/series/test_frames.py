import math

import pandas as pd
import pytest
from tests.support.stories import INFER, T0, TRAIN, a_run, losses, record_run

from tipcflow.domain import Measurement, Phase, Status
from tipcflow.store import Store

CHAIN = a_run().chain
V100 = "gpu/8x-tesla-v100/1-nodes/2-ranks"
DAY = 86_400.0


@pytest.fixture
def report(store: Store) -> Store:
    """Three runs on two kinds of nodes; the second was tried twice."""
    for number, environment in enumerate((V100, "cpu/some/2-nodes", V100)):
        run = record_run(store, a_run(f"run-{number}", environment=environment, created_at=T0 + number * DAY))
        speeds = {"metric": "batch_cost", "unit": "s"}
        store.measurements.add(losses(run.id, [0.5, 0.1, 0.3], **speeds))
        store.measurements.add(losses(run.id, [0.2 + number, math.nan], rank=1, **speeds))
    return store


def test_history_is_a_row_per_run_oldest_first(report: Store) -> None:
    found = report.frames.history(CHAIN, "train", "batch_cost", "v100")
    assert list(found["run"]) == ["run-0", "run-2"]
    assert list(found["at"]) == [pd.Timestamp(T0 + days * DAY, unit="s", tz="UTC") for days in (0, 2)]
    first = found.iloc[0]
    assert (first["n"], first["processes"], first["median"], first["mean"]) == (5, 2, 0.25, pytest.approx(0.275))
    assert (first["lowest"], first["highest"], first["unit"], first["rolled_up"]) == (0.1, 0.5, "s", False)
    assert first["p90"] == pytest.approx(0.44)


def test_history_is_filtered(report: Store) -> None:
    def runs(*requested: str, **more: object) -> list[str]:
        return list(report.frames.history(CHAIN, *requested, **more)["run"])  # type: ignore[arg-type]

    assert runs(TRAIN, "batch_cost") == ["run-0", "run-1", "run-2"]
    assert runs("train", "batch_cost", V100) == ["run-0", "run-2"]
    assert runs("train", "batch_cost", V100 + "/driver-440") == []
    assert runs("train", "batch_cost", since=T0 + DAY) == ["run-1", "run-2"]
    assert runs("train", "batch_cost", phase="eval") == runs("rain", "batch_cost") == runs("train", "ips") == []
    assert runs("train", "batch_cost", mode="whole_train_whole_infer") == []
    assert list(report.frames.history(CHAIN, "train", "ips").columns) == list(
        report.frames.history(CHAIN, "train", "loss").columns
    )


def test_every_process_has_a_history(report: Store) -> None:
    found = report.frames.history(CHAIN, "train", "batch_cost", "cpu", each=True)
    assert list(found["rank"]) == [0, 1]
    assert list(found["median"]) == [0.3, 1.2]
    assert list(found["n"]) == [3, 2]


def test_history_is_of_the_last_attempt(report: Store) -> None:
    assert report.attempts.open("run-0", TRAIN, ["node-a"], T0) == 2
    report.measurements.add(losses("run-0", [9.0], attempt=2, metric="batch_cost"))
    assert report.frames.history(CHAIN, "train", "batch_cost").iloc[0]["median"] == 9.0


def test_samples_are_the_measurements_of_a_run(report: Store) -> None:
    found = report.frames.samples("run-0")
    assert list(found.columns) == list(Measurement.model_fields)
    assert len(found) == 8
    assert found[found["metric"] == "batch_cost"]["value"].isna().sum() == 1
    assert set(found["phase"]) == {"train"}
    assert report.frames.samples("unknown").empty


def test_legs_have_their_medians(report: Store) -> None:
    one = {"run": "run-0", "step": INFER, "node": "node-a", "phase": Phase.INFER, "metric": "inference_time"}
    values = enumerate([3.0, math.inf, 1.0])
    report.measurements.add(
        Measurement(**one, leg="cpu_onednn_on", ordinal=number, value=value) for number, value in values
    )
    found = report.frames.legs("run-0")
    assert list(found["leg"]) == ["cpu_onednn_off", "cpu_onednn_on"]
    assert list(found["status"]) == [Status.PASS, Status.PASS]
    assert math.isnan(found["inference_time"][0])
    assert found["inference_time"][1] == 2.0
    assert list(found["duration_s"]) == [2.0, 2.0]
