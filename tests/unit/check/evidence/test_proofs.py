"""Proofs that each of the last accepted runs had: a run without them is not green."""

from types import ModuleType
from typing import Any

import pytest

from tipcflow.check import CheckContext, judge, verdict
from tipcflow.check.evidence import evidence_section, expected, found_in, proven_by
from tipcflow.config.suite import Prints
from tipcflow.domain import (
    CheckResult,
    Evidence,
    EvidenceKey,
    Facts,
    LegKey,
    NodeFacts,
    PastRun,
    ProcessReport,
    Status,
)
from tipcflow.domain.keys import PredictionKey

TRAINED: dict[str, Any] = {
    "steps": 10,
    "initialized": True,
    "world_size": 2,
    "backend": "gloo",
    "dtype": "paddle.float32",
    "first": ("a0",),
    "last": ("a1",),
    "saved": ("a1",),
}
SCORES = {PredictionKey("0.png"): (0.9, 0.1), PredictionKey("1.png"): (0.2, 0.8)}


@pytest.fixture
def honest(build: ModuleType) -> Facts:
    """The framework's probe reports of both ranks and the export, and the network's own predictions are known."""
    reports = iter([ProcessReport(rank="0", **TRAINED), ProcessReport(rank="1", **TRAINED)])
    records = []
    for record in build.records():
        report: tuple[ProcessReport, ...] = ()
        if record.step == build.TRAIN:
            report = (next(reports),)
        if record.step == build.EXPORT:
            report = (ProcessReport(loaded=("a1",), exported=("a1",)),)
        records.append(record.model_copy(update={"probed": True, "processes": report}))
    facts: Facts = build.facts(records=tuple(records))
    legs = dict.fromkeys(facts.predictions, SCORES)
    return facts.model_copy(update={"predictions": {**legs, LegKey(build.EXPORT): SCORES}})


def without_probe(facts: Facts) -> Facts:
    records = tuple(record.model_copy(update={"processes": ()}) for record in facts.records)
    return facts.model_copy(update={"records": records})


def after(facts: Facts, *proofs: EvidenceKey, runs: int = 5, **context: Any) -> CheckContext:
    """The context of a run after accepted runs like `facts`, which also had the proofs."""
    found = tuple(sorted(found_in(facts, Prints()) | set(proofs)))
    past = tuple(PastRun(run=f"r{number}", found=found) for number in range(runs))
    return CheckContext(history=past, **context)


def of(results: tuple[CheckResult, ...], check: str, step: str) -> list[CheckResult]:
    return [result for result in results if (result.check, result.step) == (check, step)]


def test_proofs_of_an_honest_run_are_listed(build: ModuleType, honest: Facts) -> None:
    proven = proven_by(judge(honest, CheckContext()))
    assert {key for key in proven if key.kind != Evidence.PROOF} == set()
    assert EvidenceKey(Evidence.PROOF, build.TRAIN, "", "ran.group") in proven
    assert EvidenceKey(Evidence.PROOF, build.TRAIN, "", "ran.weights") in proven
    assert EvidenceKey(Evidence.PROOF, build.EXPORT, "", "ran.weights") in proven
    assert {key.leg for key in proven if key.what == "parity.chain"} == {
        key.leg for key in honest.predictions if key.leg
    }


def test_connections_seen_from_outside_are_not_such_proof(build: ModuleType) -> None:
    """They depend on when the node runner looked: a run without them would be red by chance."""
    results = judge(build.facts(), CheckContext())
    assert [result.status for result in of(results, "ran.group", build.TRAIN)] == [Status.PASS]
    assert proven_by(results) == frozenset()


def test_proofs_can_be_repeated(honest: Facts) -> None:
    context = after(honest, *proven_by(judge(honest, CheckContext())))
    status, reason = verdict(honest, judge(honest, context))
    assert status is Status.PASS, reason


def test_a_proof_that_all_earlier_runs_had(build: ModuleType, honest: Facts) -> None:
    context = after(honest, *proven_by(judge(honest, CheckContext())))
    now = without_probe(honest)
    results = judge(now, context)
    (weights,) = of(results, "ran.weights", build.TRAIN)
    assert (weights.status, weights.reason) == (
        Status.UNCONFIRMED,
        "the probe saw no step of an optimizer: changes not proven; each of the last 5 accepted runs proves it",
    )
    assert verdict(now, results)[0] is Status.UNCONFIRMED
    states = {
        (entry["step"], entry["metric"]): entry["state"]
        for entry in evidence_section(now, context, proven_by(results))
        if entry["kind"] == "proof" and "leg" not in entry
    }
    assert states[build.TRAIN, "ran.weights"] == "unproven"


def test_a_device_that_all_earlier_runs_proved(build: ModuleType, honest: Facts) -> None:
    """A training whose device nothing shows any more may have fallen back to the CPU of its GPU node."""
    proof = EvidenceKey(Evidence.PROOF, build.TRAIN, "", "ran.training")
    with_gpus = tuple(NodeFacts(node=node, gpus=({"name": "H200"},)) for node in build.NODES)
    now = without_probe(honest).model_copy(update={"node_facts": with_gpus, "ranks": {}})
    run = build.run(environment="gpu/1x-h200/2-nodes/2-ranks")
    (training,) = of(judge(now, after(honest, proof, run=run)), "ran.training", build.TRAIN)
    assert (training.status, training.reason) == (
        Status.UNCONFIRMED,
        "device (declared: gpu) not reported; each of the last 5 accepted runs proves it",
    )


def test_a_leg_whose_network_printed_nothing_is_unproven(build: ModuleType, honest: Facts) -> None:
    """The check then has one result for the step and none for its legs."""
    proofs = [key for key in proven_by(judge(honest, CheckContext())) if key.what == "parity.chain"]
    silent = {key: scores for key, scores in honest.predictions.items() if key != LegKey(build.EXPORT)}
    now = honest.model_copy(update={"predictions": silent})
    found = after(now, *proofs)
    unproven = [result for result in judge(now, found) if result.status is Status.UNCONFIRMED]
    assert {(result.check, result.leg) for result in unproven} == {("parity.chain", key.leg) for key in proofs}
    assert unproven[0].reason == (
        "neither the export nor the evaluation printed predictions of the network itself; "
        "each of the last 5 accepted runs proves it"
    )


@pytest.mark.parametrize(
    "changes", [{"runs": 4}, {"prints": Prints(may_be_missing=("ran.*", "parity.*"))}], ids=["young", "declared"]
)
def test_nothing_is_required_by_a_young_history_or_declared_gap(honest: Facts, changes: dict[str, Any]) -> None:
    context = after(honest, *proven_by(judge(honest, CheckContext())), **changes)
    results = judge(without_probe(honest), context)
    assert [result for result in results if result.status is Status.UNCONFIRMED] == []


def test_a_proof_is_listed_before_the_run(honest: Facts) -> None:
    context = after(honest, *proven_by(judge(honest, CheckContext())))
    pieces = expected(honest.plan, Prints(), context.history)
    assert {piece.because for piece in pieces if piece.kind is Evidence.PROOF} == {
        "each of the last 5 accepted runs proves it"
    }


def test_every_repeat_must_be_proven(build: ModuleType, honest: Facts) -> None:
    good, bad = (
        CheckResult(check="ran.weights", status=status, reason="", step=step)
        for status, step in ((Status.PASS, build.TRAIN), (Status.INSUFFICIENT_DATA, "v_repeat_2/train"))
    )
    assert proven_by([good])
    assert not proven_by([good, bad])
