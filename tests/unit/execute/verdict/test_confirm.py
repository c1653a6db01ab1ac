"""Confirm runs: what is requested, what they execute, which of their results count."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.confirmations import told
from tests.support.stories import INFER, T0, TRAIN, a_plan, a_run, open_store, record_run

from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.domain import CheckResult, Cluster, Measurement, MetricKey, Node, Phase, Status, Step, StepKind
from tipcflow.domain.keys import LegKey, PartKey
from tipcflow.domain.run_documents import ConfirmationDocument
from tipcflow.execute.request import RunRequest
from tipcflow.execute.resolve.placement import rotated
from tipcflow.execute.verdict import confirm
from tipcflow.execute.verdict.check_context import build_check_context
from tipcflow.store import Store

pytestmark = pytest.mark.slow

LEG = "cpu_onednn_on"
POLICY = Policy(name="p")
WHOLE, LITE = "whole_train_whole_infer", "lite_train_lite_infer"


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with open_store(tmp_path / "t.db") as opened:
        yield opened


def answer(step: str = TRAIN, leg: str = "", *, asks: bool = True, gating: bool = True) -> CheckResult:
    return CheckResult(
        check="speed.batch_cost",
        status=Status.INSUFFICIENT_DATA,
        reason="slower; it is measured again",
        step=step,
        leg=leg,
        metric="batch_cost",
        gating=gating,
        values={"confirm": asks},
    )


def in_doubt(store: Store, *answers: CheckResult) -> Any:
    run = record_run(store, a_run(created_at=T0), status=None)
    store.checks.replace(run.id, answers)
    return run


def test_suspected_metrics_select_steps_and_legs() -> None:
    answers = [answer(), answer(), answer(INFER, LEG), answer(asks=False), answer(INFER, "x", gating=False)]
    assert confirm.suspected(answers) == (LegKey(INFER, LEG).part, PartKey(TRAIN))


def test_a_confirm_run_is_requested_once_beyond_the_budget(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by a run that took all of its budget: the confirm run has minutes of its own."""
    late = T0 + 60 * POLICY.budget_minutes + 5
    monkeypatch.setattr(confirm.time, "time", lambda: late)
    run = in_doubt(store, answer())
    requested = confirm.request_confirmation(store, run, POLICY, "child")
    assert requested == ConfirmationDocument(run="child", keys=(TRAIN,), until=late + 15 * 60, mode=run.mode)
    assert confirm.confirm_request_of(store, run.id) == requested
    assert confirm.request_confirmation(store, run, POLICY, "other") is None
    confirm.drop_request(store, run.id)
    assert confirm.request_confirmation(store, run, POLICY, "other")


def test_further_confirm_run_follows_one_that_shows_the_change(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, policy = [T0], Policy(name="p", confirm_runs=2)
    monkeypatch.setattr(confirm.time, "time", lambda: now[0])
    run = in_doubt(store, answer())
    first = confirm.request_confirmation(store, run, policy, "first")
    assert first
    again = answer().model_copy(update={"values": {"confirm": True, "confirmed_by": 1}})
    store.checks.replace(run.id, [again, answer(INFER, LEG)])
    assert confirm.request_confirmation(store, run, policy, "second") is None, "the first one has not ended"
    store.runs.create(a_run("first", trigger="confirm", created_at=T0 + 1), a_plan())
    assert confirm.request_confirmation(store, run, policy, "second") is None
    store.runs.finish("first", Status.UNCONFIRMED, "slower", T0 + 30)
    assert confirm.request_confirmation(store, run, POLICY, "second") is None, "one is enough"
    now[0] = T0 + 100
    second = confirm.request_confirmation(store, run, policy, "second", dag_run_id="d", run_after="a")
    changes = {
        "run": "second",
        "until": T0 + 100 + 15 * 60,
        "earlier": ("first",),
        "dag_run_id": "d",
        "run_after": "a",
    }
    assert second == first.model_copy(update=changes), "only what a confirm run showed is measured again"
    assert confirm.confirm_request_of(store, run.id) == second
    store.runs.create(a_run("second", trigger="confirm", created_at=T0 + 101), a_plan())
    store.runs.finish("second", Status.UNCONFIRMED, "slower", T0 + 130)
    assert confirm.request_confirmation(store, run, policy, "third") is None


@pytest.mark.parametrize("status", [Status.FAILED, Status.INFRA_FAILURE, Status.CANCELLED, Status.CONFIG_ERROR])
def test_no_confirm_run_follows_one_without_a_measurement(store: Store, status: Status) -> None:
    run, policy = in_doubt(store, answer()), Policy(name="p", confirm_runs=2)
    assert confirm.request_confirmation(store, run, policy, "first")
    store.runs.create(a_run("first", trigger="confirm", created_at=T0 + 1), a_plan())
    store.runs.finish("first", status, "", T0 + 30)
    again = answer().model_copy(update={"values": {"confirm": True, "confirmed_by": 1}})
    store.checks.replace(run.id, [again])
    assert confirm.request_confirmation(store, run, policy, "second") is None


def test_the_checks_report_a_policy_without_confirm_runs(store: Store) -> None:
    run = in_doubt(store, answer())
    assert confirm.request_confirmation(store, run, Policy(name="p", confirm_minutes=0), "child") is None
    assert not confirm.is_awaited(store, run.id)
    assert told(store, run) == ("child", {}, f"is not waited for: {confirm.NONE}", "")


def test_a_confirm_run_is_not_confirmed(store: Store) -> None:
    run = in_doubt(store, answer()).model_copy(update={"trigger": "confirm"})
    assert confirm.request_confirmation(store, run, POLICY, "child") is None
    assert told(store, run) is None


def test_confirm_run_has_only_suspected_steps_and_their_needs() -> None:
    plan = a_plan()
    assert [step.id for step in confirm.cut(plan, [PartKey(TRAIN)]).steps] == [TRAIN]
    made = confirm.cut(plan, [LegKey(INFER, LEG).part])
    assert [step.id for step in made.steps] == [TRAIN, INFER]
    assert [leg.id for leg in made.steps[1].legs] == [LEG]


def test_the_nodes_change_places() -> None:
    nodes = tuple(Node(name=n, address=n, python="/p", workspace="/w") for n in "abc")
    assert [node.name for node in rotated(Cluster(name="c", nodes=nodes)).nodes] == ["b", "c", "a"]
    mixed = (nodes[0], nodes[1].model_copy(update={"device": "gpu"}), nodes[2])
    assert [node.name for node in rotated(Cluster(name="c", nodes=mixed)).nodes] == ["c", "b", "a"]


@pytest.mark.parametrize(("ref", "expected"), [(None, None), ("main", "abc")])
def test_a_confirm_run_has_the_commit_and_the_requested_mode(ref: str | None, expected: str | None) -> None:
    request = RunRequest("f.txt", "s", WHOLE, "c", Path("/x"), suite_ref=ref, repeats=3)
    requested = ConfirmationDocument(run="child", keys=(TRAIN,), until=T0, mode=LITE)
    made = confirm.request_for(request, a_run(suite_commit="abc"), requested, T0)
    assert (made.mode, made.suite_ref) == (LITE, expected)
    assert (made.trigger, made.confirms, made.only, made.repeats) == ("confirm", a_run().id, (PartKey(TRAIN),), 1)


def on_all_data(store: Store, *answers: CheckResult, took_s: float) -> Any:
    """A run on all data with a training of this duration, which waits for its verdict."""
    run = record_run(store, a_run(mode=WHOLE, created_at=T0), status=None)
    number = store.attempts.open(run.id, TRAIN, run.nodes, T0)
    store.attempts.close(run.id, TRAIN, number, Status.PASS, "", [], T0 + took_s)
    store.checks.replace(run.id, answers)
    return run


@pytest.mark.parametrize(
    ("takes_s", "metrics", "expected"),
    [
        (300, ("batch_cost",), LITE),
        (300, ("batch_cost", "top1"), WHOLE),
        (300, ("top1",), WHOLE),
        (300, ("peak_rss",), WHOLE),
        (9000, ("batch_cost", "top1"), LITE),
        (9000, ("top1",), None),
    ],
)
def test_only_speeds_are_confirmed_on_a_little_data(
    store: Store, takes_s: float, metrics: tuple[str, ...], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirm.time, "time", lambda: T0)
    answers = [answer().model_copy(update={"metric": name}) for name in metrics]
    run = on_all_data(store, *answers, took_s=takes_s)
    requested = confirm.request_confirmation(store, run, POLICY, "child")
    assert (requested and requested.mode) == expected


def test_metrics_that_need_the_full_dataset_are_evaluated_alone(store: Store) -> None:
    short, long = (Policy(name="p", confirm_minutes=minutes) for minutes in (4, 6))
    run = on_all_data(store, answer(), took_s=300)
    assert confirm.unconfirmable(store, run, long) == ""
    assert confirm.unconfirmable(store, run, short) == "a full run takes 5.1 min, confirm_minutes is 4"
    store.documents.put(run.id, ConfirmationDocument(run="c", keys=(TRAIN,), until=T0, mode=LITE))
    assert confirm.unconfirmable(store, run, long) == f"not measurable in {LITE}"
    assert confirm.unconfirmable(store, run.model_copy(update={"mode": LITE}), short) == ""
    context = build_check_context(store, run, rules=long, references=References(suite="s"))
    assert context.unconfirmable == f"not measurable in {LITE}"


EVAL = "norm_train_cpu/eval"


def evaluated(store: Store, *answers: CheckResult, train_s: float, eval_s: float = 60) -> Any:
    """(a run on full data with an evaluation, its confirm request)."""
    run, plan = a_run(mode=WHOLE, created_at=T0), a_plan()
    one = Step(id=EVAL, kind=StepKind.EVAL, nodes=("node-a",), after=(TRAIN,), variant="norm_train_cpu")
    store.runs.create(run, plan.model_copy(update={"steps": (plan.steps[0], one, *plan.steps[1:])}))
    for step, took_s in ((TRAIN, train_s), (EVAL, eval_s)):
        number = store.attempts.open(run.id, step, run.nodes, T0)
        store.attempts.close(run.id, step, number, Status.PASS, "", [], T0 + took_s)
    store.checks.replace(run.id, answers)
    return run, confirm.request_confirmation(store, run, POLICY, "child")


TOP1 = answer(EVAL).model_copy(update={"check": "accuracy.history", "metric": "top1"})
SPEED = answer()
MEMORY = answer().model_copy(update={"metric": "peak_rss"})


@pytest.mark.parametrize(
    ("answers", "train_s", "keys", "mode", "alone"),
    [
        ((TOP1,), 300, (EVAL,), WHOLE, True),
        ((TOP1,), 9000, (EVAL,), WHOLE, True),
        ((TOP1, answer(EVAL)), 9000, (EVAL,), WHOLE, True),
        ((TOP1, SPEED), 300, (EVAL, TRAIN), WHOLE, False),
        ((TOP1, SPEED), 9000, (TRAIN,), LITE, False),
        ((TOP1, MEMORY), 9000, (EVAL,), WHOLE, True),
        ((SPEED, answer(EVAL)), 300, (EVAL, TRAIN), LITE, False),
    ],
)
def test_an_evaluation_is_confirmed_by_an_evaluation_alone(
    store: Store, answers: Any, train_s: float, keys: Any, mode: str, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirm.time, "time", lambda: T0)
    _, requested = evaluated(store, *answers, train_s=train_s)
    assert requested == ConfirmationDocument(run="child", keys=keys, until=T0 + 900, mode=mode, alone=alone)


def test_an_evaluation_that_takes_too_long_is_judged_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirm.time, "time", lambda: T0)
    run, requested = evaluated(store, TOP1, train_s=9000, eval_s=901)
    assert requested is None
    assert confirm.evaluable(store, run, POLICY) == frozenset()
    assert confirm.unconfirmable(store, run, POLICY).startswith("a full run takes")


def test_the_evaluation_alone_is_planned_with_the_weights_of_each_repeat(store: Store) -> None:
    request = RunRequest("f.txt", "s", WHOLE, "c", Path("/x"), repeats=2)
    made = confirm.request_for(
        request, a_run(), ConfirmationDocument(run="child", keys=(EVAL,), until=T0, mode=WHOLE, alone=True), T0
    )
    assert (made.repeats, made.evaluates, made.only) == (2, True, (PartKey(EVAL),))
    steps = [
        Step(id=f"norm_train_cpu_repeat_{n}/{kind.value}", kind=kind, nodes=("a",), after=("prepare",))
        for n in (1, 2)
        for kind in (StepKind.TRAIN, StepKind.EVAL)
    ]
    left = confirm.cut_alone(a_plan(steps=tuple(steps)), [PartKey(EVAL)]).steps
    assert [(step.id, step.after) for step in left] == [(steps[1].id, ()), (steps[3].id, ())]


def test_number_is_judged_alone_if_the_weights_are_deleted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirm.time, "time", lambda: T0)
    run, _ = evaluated(store, TOP1, train_s=300)
    assert confirm.evaluable(store, run, POLICY) == {EVAL}
    assert confirm.unconfirmable(store, run, POLICY) == ""
    store.runs.create(a_run("child", trigger="confirm", mode=WHOLE, created_at=T0 + 1))
    store.runs.finish("child", Status.INFRA_FAILURE, "weights are not there any more", T0 + 2)
    why = "confirm run child is infra_failure: weights are not there any more"
    context = build_check_context(store, run, rules=POLICY, references=References(suite="s"))
    assert (context.unconfirmable, context.evaluable) == (why, frozenset())


@pytest.mark.parametrize(("ips", "speeds"), [(8.0, ["batch_cost", "ips"]), (16.0, [])])
def test_in_another_mode_only_speeds_of_like_batches_count(store: Store, ips: float, speeds: list[str]) -> None:
    run = record_run(store, a_run(mode=WHOLE, created_at=T0), status=None)
    child = record_run(store, a_run("child", trigger="confirm", mode=LITE, created_at=T0 + 1))
    known: dict[str, Any] = {"step": TRAIN, "node": "node-a", "unit": ""}
    store.measurements.add(
        [
            *(
                Measurement(run=of.id, metric=name, phase=Phase.TRAIN, value=value, **known)
                for of, result in ((run, 8.0), (child, ips))
                for name, value in (("batch_cost", 0.25), ("ips", result), ("loss", 1.0))
            ),
            Measurement(run=child.id, metric="top1", phase=Phase.EVAL, value=0.012, **known),
            Measurement(run=child.id, metric="peak_rss", phase=Phase.RESOURCE, value=9e9, rank=0, **known),
            Measurement(run=child.id, metric="wall_time", phase=Phase.RESOURCE, value=9.0, **known),
        ]
    )
    store.documents.put(run.id, ConfirmationDocument(run="child", keys=(TRAIN,), until=T0, mode=LITE))
    by, medians, missing, _ = told(store, run) or ("", {}, "", "")
    assert (by, sorted(key.metric for key in medians)) == ("child", speeds)
    assert missing == ("is pass" if speeds else f"different batch size in {TRAIN}")


def test_confirm_run_is_awaited_until_the_end_or_the_deadline(store: Store) -> None:
    run = in_doubt(store, answer())
    store.documents.put(run.id, ConfirmationDocument(run="child", keys=(TRAIN,), until=T0 + 60))
    assert confirm.is_awaited(store, run.id, T0)
    assert not confirm.is_awaited(store, run.id, T0 + 60)
    store.runs.create(a_run("child", trigger="confirm", created_at=T0))
    assert confirm.is_awaited(store, run.id, T0)
    store.runs.finish("child", Status.FAILED, "it fell", T0 + 9)
    assert not confirm.is_awaited(store, run.id, T0 + 10)


def test_confirm_values_count_for_the_confirmed_run_only(store: Store) -> None:
    run = in_doubt(store, answer())
    child = record_run(store, a_run("child", trigger="confirm", created_at=T0 + 1))
    known = {"run": "child", "step": TRAIN, "node": "node-b", "metric": "batch_cost", "unit": "s"}
    store.measurements.add([Measurement(**known, phase=Phase.TRAIN, value=0.25)])
    assert told(store, run) is None
    store.documents.put(run.id, ConfirmationDocument(run=child.id, keys=(TRAIN,), until=T0 + 60))
    context = build_check_context(store, store.runs.get(run.id), rules=POLICY, references=References(suite="s"))
    assert context.confirmation
    assert (context.confirmation.run, context.confirmation.medians[MetricKey(TRAIN, "", "batch_cost")]) == (
        "child",
        0.25,
    )
    later = a_run("later", created_at=T0 + 9)
    assert build_check_context(store, later, rules=POLICY, references=References(suite="s")).history == ()


def test_a_confirm_run_that_never_started_has_a_reason(store: Store) -> None:
    run = record_run(store, a_run(created_at=T0, environment="cpu/x/2-nodes"), status=None)
    store.runs.create(a_run("child", trigger="confirm", created_at=T0 + 1))
    store.documents.put(run.id, ConfirmationDocument(run="child", keys=(TRAIN,), until=T0 + 60))
    store.runs.finish("child", Status.CANCELLED, "stopped by a user", T0 + 9)
    assert told(store, run) == ("child", {}, "is cancelled: stopped by a user", "")


def test_only_the_requested_steps_and_their_dependencies_are_planned() -> None:
    plan = a_plan()
    part = confirm.with_only(plan, (PartKey(TRAIN),))
    assert [step.id for step in part.steps] == [TRAIN]
    assert confirm.with_only(plan, ()) == plan


def test_all_steps_are_planned_if_the_requested_one_does_not_exist() -> None:
    assert confirm.with_only(a_plan(), (PartKey("other/train"),)) == a_plan()
