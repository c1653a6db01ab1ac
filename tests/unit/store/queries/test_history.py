import math

import numpy as np
import pytest
from tests.support.stories import INFER, T0, TRAIN, a_plan, a_record, a_run, losses, record_run, some_facts

from tipcflow.domain import (
    ConfigError,
    CurveKey,
    LegKey,
    LossKey,
    Measurement,
    MetricKey,
    Phase,
    RankReport,
    Series,
    Status,
)
from tipcflow.domain.build import FrameworkBuild
from tipcflow.domain.keys import PredictionKey
from tipcflow.domain.run_documents import (
    AutologDocument,
    CertificateDocument,
    EngineDocument,
    NumbersDocument,
    PredictionsDocument,
    RanksDocument,
    ReportersDocument,
)
from tipcflow.store import Store
from tipcflow.store.baselines import Baseline
from tipcflow.store.series import measurements

ON = "cpu_onednn_on"


def test_facts_come_from_the_last_attempt(store: Store) -> None:
    run = a_run()
    store.runs.create(run, a_plan())
    store.nodes.save(run.id, [some_facts("node-b"), some_facts("node-a")])
    for number, value in ((1, 9.0), (2, 0.5)):
        assert store.attempts.open(run.id, TRAIN, ["node-a", "node-b"], T0) == number
        store.measurements.add(losses(run.id, [value], attempt=number))
        records = [a_record(run.id, node=node, attempt=number, exit_code=2 - number) for node in run.nodes]
        store.attempts.close(run.id, TRAIN, number, Status.PASS, "", records, T0)
    leg = a_record(run.id, step=INFER, leg="cpu_onednn_on")
    store.attempts.open(run.id, INFER, ["node-a"], T0)
    store.attempts.close(run.id, INFER, 1, Status.PASS, "", [leg, a_record(run.id, step=INFER)], T0)
    store.steps.set_leg(run.id, INFER, "cpu_onednn_on", 1, Status.PASS, "", leg)
    store.steps.set_leg(run.id, INFER, "cpu_onednn_off", 1, Status.NOT_RUN, "no AVX512")
    store.steps.set(run.id, TRAIN, Status.PASS)
    store.steps.set(run.id, INFER, Status.PASS, "1 of 2 legs")
    store.documents.put(run.id, PredictionsDocument({f"{INFER}/cpu_onednn_on": {"0.png": [0.25, 0.75]}}))
    store.documents.put(run.id, AutologDocument({f"{INFER}/cpu_onednn_on": {"batch_size": "1"}}))
    store.documents.put(run.id, EngineDocument({f"{INFER}/cpu_onednn_on": {"onednn": "True"}}))
    store.documents.put(run.id, RanksDocument({TRAIN: (RankReport(rank=0, world_size=4),)}))
    store.documents.put(run.id, ReportersDocument({"v/infer_cpu/a": "tipcflow-sample"}))
    store.documents.put(run.id, CertificateDocument({"not": "a fact"}))

    facts = store.history.facts(run.id)
    assert facts.plan == a_plan()
    assert [item.value for item in facts.measurements] == [0.5]
    assert {(r.step, r.node, r.leg): r.exit_code for r in facts.records} == {
        (TRAIN, "node-a", ""): 0,
        (TRAIN, "node-b", ""): 0,
        (INFER, "node-a", ""): 0,
        (INFER, "node-a", "cpu_onednn_on"): 0,
    }
    assert [node.node for node in facts.node_facts] == ["node-a", "node-b"]
    assert facts.step_status == {TRAIN: Status.PASS, INFER: Status.PASS}
    assert facts.leg_status == {
        LegKey(INFER, "cpu_onednn_on"): Status.PASS,
        LegKey(INFER, "cpu_onednn_off"): Status.NOT_RUN,
    }
    assert facts.step_reason == {
        LegKey(INFER): "1 of 2 legs",
        LegKey(INFER, "cpu_onednn_off"): "no AVX512",
    }
    assert facts.predictions == {LegKey(INFER, "cpu_onednn_on"): {PredictionKey("0.png"): (0.25, 0.75)}}
    assert facts.engine[LegKey(INFER, "cpu_onednn_on")] == {"onednn": "True"}
    assert facts.ranks[TRAIN][0].world_size == 4
    assert facts.reporter == "tipcflow-sample"


def test_an_unknown_run_has_no_facts(store: Store) -> None:
    for ask in (store.history.facts, store.history.past_run):
        with pytest.raises(ConfigError, match="no such run"):
            ask("unknown")


def test_an_attempt_without_measurements_hides_those_of_the_one_before(store: Store) -> None:
    run = record_run(store, status=None)
    store.attempts.open(run.id, TRAIN, run.nodes, T0)
    assert store.history.facts(run.id).measurements == ()


def test_accepted_runs_are_comparable_and_newest_first(store: Store) -> None:
    ended = (
        ("run-0", {}, Status.PASS),
        ("run-1", {}, Status.IMPROVEMENT),
        ("run-2", {}, Status.FAILED),
        ("run-3", {"mode": "whole_train_whole_infer"}, Status.PASS),
        ("run-4", {"environment": "gpu"}, Status.PASS),
        ("run-5", {"chain": "other"}, Status.PASS),
        ("run-6", {}, None),
        ("run-7", {}, Status.PASS),
    )
    for number, (name, fields, status) in enumerate(ended):
        run = a_run(name, **({"environment": "cpu", "created_at": T0 + number} | fields))
        store.runs.create(run)
        if status:
            store.runs.finish(name, status, "", T0 + 99)
    requested = (run.chain, "lite_train_lite_infer", "cpu")
    assert store.history.accepted(a_run().chain, *requested[1:], exclude="run-7") == ["run-1", "run-0"]
    assert store.history.accepted(a_run().chain, *requested[1:], limit=2) == ["run-7", "run-1"]


def test_runs_that_executed_a_leg_are_found(store: Store) -> None:
    for number, left_out in enumerate(("", ON, "")):
        record_run(store, a_run(f"run-{number}", created_at=T0 + number), left_out=left_out)
    store.runs.create(a_run("run-3", created_at=T0 + 3), a_plan())
    store.steps.set_leg("run-3", INFER, ON, 0, Status.NOT_RUN, "dropped")
    store.steps.set_leg("run-2", INFER, ON, 2, Status.PASS)
    parts = {LegKey(INFER), LegKey(INFER, ON), LegKey(TRAIN, ON), LegKey("other")}
    assert store.history.executed(["run-3", "run-2", "run-1", "run-0"], parts) == {
        LegKey(INFER): ["run-2", "run-1", "run-0"],
        LegKey(INFER, ON): ["run-2", "run-0"],
    }
    assert store.history.executed(["run-0"], {LegKey(TRAIN)}) == {LegKey(TRAIN): ["run-0"]}
    assert store.history.executed([], parts) == {}


def test_wheel_under_test_does_not_replace_the_version_of_the_nodes(store: Store) -> None:
    """With too few other runs it counts: a deployment that only tests wheels has a history, too."""

    def add(number: int, framework: str) -> None:
        run = a_run(f"run-{number}", environment="cpu", framework=framework, created_at=T0 + number)
        store.runs.create(run)
        store.runs.finish(run.id, Status.PASS, "", T0 + 99)

    def accepted(limit: int = 20) -> list[str]:
        return store.history.accepted(a_run().chain, "lite_train_lite_infer", "cpu", limit=limit)

    for number in range(4):
        add(number, "paddle 3.3.1")
    add(4, f"paddle {FrameworkBuild(name='paddlepaddle', version='3.4.0', wheel='w', sha256='ab' * 32).label}")
    assert accepted() == ["run-4", "run-3", "run-2", "run-1", "run-0"]
    assert accepted(limit=1) == ["run-3"]
    add(5, "paddle 3.4.0")
    assert accepted() == ["run-5", "run-3", "run-2", "run-1", "run-0"]


def test_a_past_run_holds_medians_and_losses(store: Store) -> None:
    run = record_run(store, a_run(seed=3, framework="paddle 3.3.1", suite_sha256="ab"))
    store.measurements.add(losses(run.id, [math.nan, 8.0], node="node-b"))
    latency = {"run": run.id, "step": INFER, "leg": "cpu_onednn_on", "node": "node-a", "metric": "latency_ms"}
    store.measurements.add(
        Measurement(**latency, phase=Phase.INFER, ordinal=number, value=value)
        for number, value in enumerate([3.0, math.inf, 1.0])
    )
    past = store.history.past_run(run.id)
    assert (past.run, past.seed, past.framework, past.suite_sha256) == (run.id, 3, "paddle 3.3.1", "ab")
    assert past.medians == {
        MetricKey(TRAIN, "", "loss"): 1.5,
        MetricKey(INFER, "cpu_onednn_on", "latency_ms"): 2.0,
    }
    assert past.losses[LossKey(TRAIN, CurveKey("node-a", 0))] == (2.0, 1.0, 0.5)
    assert math.isnan(past.losses[LossKey(TRAIN, CurveKey("node-b", 0))][0])


def test_an_accepted_baseline_is_in_force_and_the_old_one_stays(store: Store) -> None:
    run = record_run(store)
    known = {
        "chain": run.chain,
        "mode": run.mode,
        "step": TRAIN,
        "metric": "ips",
        "environment": "cpu",
        "run": run.id,
        "who": "me",
        "why": "new compiler",
        "accepted_at": T0,
    }
    assert store.baselines.accept_one(Baseline(**known, value=100.0)) == 0
    assert store.baselines.accept_one(Baseline(**known, value=90.0, pinned=True)) == 1
    assert store.baselines.accept_one(Baseline(**(known | {"metric": "loss"}), value=0.5)) == 0
    found = {
        one.metric: (one.value, one.ordinal, one.pinned)
        for one in store.baselines.active(run.chain, run.mode, "cpu")
    }
    assert found == {"ips": (90.0, 1, True), "loss": (0.5, 0, False)}
    assert store.baselines.active(run.chain, run.mode, "gpu") == []
    with pytest.raises(Exception, match="because"):
        store.baselines.accept_one(Baseline(**(known | {"why": ""}), value=1.0))


def series_of(run: str, rank: int, values: list[float]) -> Series:
    number = np.arange(len(values))
    return Series(
        run=run, step=TRAIN, node="node-a", rank=rank, metric="loss", phase=Phase.TRAIN,
        values=np.array(values), epoch=number.astype(np.int32) * 0, iteration=number.astype(np.int32),
        offset=number * 100,
    )  # fmt: skip


@pytest.mark.slow
def test_facts_of_very_long_series_are_bounded(store: Store) -> None:
    """Spread over the series, with all that is not finite, and the last."""
    run = a_run()
    store.runs.create(run, a_plan())
    store.attempts.open(run.id, TRAIN, ["node-a"], T0)
    values = [1.0 + 1 / (1 + at) for at in range(300_001)]
    values[123_457] = math.nan
    store.series.add(
        [series_of(run.id, 0, values), series_of(run.id, 1, values[:50]), series_of(run.id, 2, values)]
    )
    facts = store.history.facts(run.id).measurements
    by_rank = {rank: [one for one in facts if one.rank == rank] for rank in range(3)}
    assert len(facts) < 210_000
    assert [one.value for one in by_rank[1]] == values[:50], "short ones are whole"
    for rank in (0, 2):
        assert len(by_rank[rank]) > 9_000
        assert by_rank[rank][-1].ordinal == 300_000
        assert [one.ordinal for one in by_rank[rank] if math.isnan(one.value)] == [123_457]
        assert all(one.iteration == one.ordinal for one in by_rank[rank])
    past = store.history.past_run(run.id)
    assert len(past.losses[LossKey(TRAIN, CurveKey("node-a", 1))]) == 50
    assert past.medians[MetricKey(TRAIN, "", "loss")] == pytest.approx(1.0, abs=1e-4)


def test_numbers_of_past_runs_are_read_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A history of many runs makes no object per sample again: loss curves are read as floats."""
    run = a_run()
    store.runs.create(run, a_plan())
    store.attempts.open(run.id, TRAIN, ["node-a"], T0)
    store.measurements.add(losses(run.id, [3.0, 2.0]))
    store.measurements.add(losses(run.id, [0.5, 0.7, 0.6], metric="batch_cost"))
    assert store.documents.get(run.id, NumbersDocument) is None
    before = store.history.past_run(run.id)
    assert store.documents.get(run.id, NumbersDocument) is None, "it has not ended"
    store.runs.finish(run.id, Status.PASS, "", T0 + 5)
    assert store.history.past_run(run.id) == before
    read: list[str] = []
    unpack = measurements.unpack
    monkeypatch.setattr(measurements, "unpack", lambda row, most: read.append(row["metric"]) or unpack(row, most))
    assert store.history.past_run(run.id) == before
    assert read == []
    store.measurements.add(losses(run.id, [0.9], metric="ips"))
    assert MetricKey(TRAIN, "", "ips") in store.history.past_run(run.id).medians, (
        "what was kept holds for the same samples only"
    )
