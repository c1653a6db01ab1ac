"""ran.*: nothing is believed that is not proven, and nothing is named on the model that is not its fault."""

from types import ModuleType

import pytest

from tipcflow.check import CheckContext
from tipcflow.check.proof.engine import ran_engine
from tipcflow.check.proof.steps import ran_steps
from tipcflow.check.proof.world import ran_world_size
from tipcflow.domain import CheckResult, EndReason, Facts, LegKey, OutputFile, RankReport, Status

CONTEXT = CheckContext()
FAILED, PASS, OPEN, INFRA = Status.FAILED, Status.PASS, Status.INSUFFICIENT_DATA, Status.INFRA_FAILURE


def one(results: list[CheckResult]) -> CheckResult:
    (result,) = results
    return result


def with_status(build: ModuleType, **statuses: Status | None) -> dict[str, Status]:
    changed = {**build.facts().step_status, **{getattr(build, name): status for name, status in statuses.items()}}
    return {key: status for key, status in changed.items() if status is not None}


def test_good_run_has_a_status_of_every_step(build: ModuleType) -> None:
    result = one(ran_steps(build.facts(), CONTEXT))
    assert (result.status, result.reason) == (
        PASS,
        "all planned steps and legs were executed, or left out with a reason (7 pass, 2 not_run)",
    )


def test_a_step_without_a_trace_is_a_failure(build: ModuleType) -> None:
    facts = build.facts(step_status=with_status(build, EXPORT=None))
    result = one(ran_steps(facts, CONTEXT))
    assert result.status is FAILED
    assert "v/export was planned and did not run" in result.reason


def test_a_leg_without_a_trace_is_a_failure(build: ModuleType) -> None:
    facts = build.facts(leg_status={f"{build.INFER}/{build.ON}": PASS})
    result = one(ran_steps(facts, CONTEXT))
    assert result.status is FAILED
    assert f"leg {build.INFER}/{build.OFF} was planned and did not run" in result.reason


def test_steps_not_started_are_an_infra_failure(build: ModuleType) -> None:
    facts = build.facts(step_status={"prepare": INFRA}, leg_status={}, records=(), measurements=())
    result = one(ran_steps(facts, CONTEXT))
    assert result.status is INFRA, "the nodes' fault, not the model's"
    counts = "(steps and legs: 2 not_run, 6 blocked, 1 infra_failure)"
    assert result.reason == f"the training did not succeed: v/train was not started {counts}"


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (
            FAILED,
            "the training did not succeed: v/train failed (steps and legs: 1 pass, 2 not_run, ",
        ),
        (INFRA, "the training did not succeed: v/train had an infra_failure (steps and legs: "),
        (Status.CANCELLED, "the training did not succeed: v/train was cancelled (steps and legs: "),
    ],
)
def test_a_training_without_success_is_described_by_its_end(
    build: ModuleType, status: Status, reason: str
) -> None:
    facts = build.facts(step_status={"prepare": PASS, build.TRAIN: status}, leg_status={}, measurements=())
    assert one(ran_steps(facts, CONTEXT)).reason.startswith(reason)


def test_all_executed_steps_are_a_pass_without_an_exception(build: ModuleType) -> None:
    infer = next(step for step in build.steps() if step.id == build.INFER)
    steps = tuple(step for step in build.steps() if not step.not_run and step.id != infer.id)
    facts = build.facts(plan=build.plan(steps=steps))
    assert one(ran_steps(facts, CONTEXT)).reason == f"all planned steps and legs were executed ({len(steps)} pass)"


def test_a_skipped_step_must_have_a_reason(build: ModuleType) -> None:
    facts = build.facts(step_status=with_status(build, EVAL=Status.NOT_RUN))
    result = one(ran_steps(facts, CONTEXT))
    assert (result.status, "v/eval was skipped without a reason" in result.reason) == (FAILED, True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"exit_code": 1}, "ended with 1 (exited) on alpha"),
        ({"reason": EndReason.DEADLINE, "exit_code": None}, "ended with None (deadline)"),
        ({"outputs": (OutputFile(path="final.pdparams", exists=False),)}, "did not write final.pdparams"),
        ({"outputs": (OutputFile(path="old.pdparams", exists=True, fresh=False),)}, "did not write old.pdparams"),
    ],
)
def test_a_contradicting_exit_record_is_a_failure(
    build: ModuleType, changes: dict[str, object], words: str
) -> None:
    records = [r for r in build.records() if (r.step, r.node) != (build.TRAIN, "alpha")]
    facts = build.facts(records=(*records, build.record(build.TRAIN, "alpha", **changes)))
    result = one(ran_steps(facts, CONTEXT))
    assert result.status is FAILED
    assert words in result.reason


def test_an_exit_record_of_an_earlier_attempt_does_not_count(build: ModuleType) -> None:
    earlier = build.record(build.TRAIN, "alpha", exit_code=1)
    later = [r.model_copy(update={"attempt": 2}) if r.step == build.TRAIN else r for r in build.records()]
    assert one(ran_steps(build.facts(records=(earlier, *later)), CONTEXT)).status is PASS


def test_a_node_without_an_exit_record_is_a_failure(build: ModuleType) -> None:
    records = tuple(r for r in build.records() if r.node != "beta")
    result = one(ran_steps(build.facts(records=records), CONTEXT))
    assert (result.status, "v/train has no exit record from beta" in result.reason) == (FAILED, True)


def test_exit_code_0_without_one_iteration_is_not_a_training(build: ModuleType) -> None:
    facts = build.facts(measurements=tuple(m for m in build.measurements() if m.step != build.TRAIN))
    result = one(ran_steps(facts, CONTEXT))
    assert result.status is FAILED
    assert "v/train exited with 0 but logged no training iteration" in result.reason


def test_a_training_mode_must_train(build: ModuleType) -> None:
    skipped = {"prepare": PASS, build.TRAIN: Status.NOT_RUN}
    why = {build.TRAIN: "the tested ref no longer declares it"}
    facts = build.facts(step_status=skipped, leg_status={}, records=(), measurements=(), step_reason=why)
    result = one(ran_steps(facts, CONTEXT))
    assert result.status is FAILED
    assert "the training did not succeed: v/train was not run" in result.reason


def test_a_run_that_inferred_nothing_is_not_a_pass(build: ModuleType) -> None:
    """No leg can run on the node's CPU: preparing data alone certifies nothing."""
    infer = next(step for step in build.facts().plan.steps if step.id == build.INFER)
    leg = {f"{infer.id}/{one.id}": Status.NOT_RUN for one in infer.legs}
    why = dict.fromkeys([infer.id, *leg], "the CPU of node a cannot do bf16")
    plan = build.plan(steps=(infer.model_copy(update={"after": ()}),))
    facts = build.facts(plan=plan, step_status={infer.id: Status.NOT_RUN}, leg_status=leg, step_reason=why)
    assert one(ran_steps(facts, CONTEXT)).status is FAILED


def test_nothing_planned_is_not_a_pass(build: ModuleType) -> None:
    facts = build.facts(plan=build.plan(steps=()), step_status={}, leg_status={})
    assert one(ran_steps(facts, CONTEXT)).status is FAILED


def test_cancelled_work_is_not_the_models_fault(build: ModuleType) -> None:
    statuses = {"prepare": PASS, build.TRAIN: Status.CANCELLED}
    facts = build.facts(step_status=statuses, leg_status={}, measurements=())
    assert one(ran_steps(facts, CONTEXT)).status is Status.NOT_RUN


def test_blocked_by_nothing_is_missing_work(build: ModuleType) -> None:
    """A leg without a record, and a step that is blocked although all its dependencies succeeded."""
    legs = {**build.facts().leg_status, f"{build.INFER}/{build.ON}": Status.BLOCKED}
    forgotten = one(ran_steps(build.facts(leg_status=legs), CONTEXT))
    assert (forgotten.status, "planned and did not run" in forgotten.reason) == (FAILED, True)
    alone = one(
        ran_steps(build.facts(leg_status=legs, step_status=with_status(build, INFER=Status.BLOCKED)), CONTEXT)
    )
    assert alone.status is FAILED
    assert "v/infer_cpu was planned and was blocked although no dependency failed" in alone.reason


def test_step_after_a_failed_step_may_be_blocked(build: ModuleType) -> None:
    statuses = with_status(build, EXPORT=INFRA, INFER=Status.BLOCKED)
    result = one(ran_steps(build.facts(step_status=statuses, leg_status={}), CONTEXT))
    assert result.status is INFRA


def ranks(*report: tuple[str, int, int]) -> tuple[RankReport, ...]:
    return tuple(RankReport(node=node, rank=rank, world_size=world, seed=2026) for node, rank, world in report)


@pytest.mark.parametrize(
    ("report", "words"),
    [
        ([("alpha", 0, 1), ("beta", 0, 1)], "rank 0 on alpha reported world size 1; declared: 2"),
        (
            [("alpha", 0, 2), ("beta", 0, 2)],
            "rank 0 ran on alpha and on beta: the nodes did not train as one group",
        ),
        ([("alpha", 0, 2)], "rank 1 of 2 never reported itself"),
        ([("beta", 0, 2), ("alpha", 1, 2)], "rank 0 ran on beta; expected on alpha"),
        ([("alpha", 0, 2), ("beta", 1, 2), ("beta", 2, 2)], "unexpected rank 2; declared world size: 2"),
    ],
)
def test_wrong_world_size_fails_the_check(
    build: ModuleType, report: list[tuple[str, int, int]], words: str
) -> None:
    result = one(ran_world_size(build.facts(ranks={build.TRAIN: ranks(*report)}), CONTEXT))
    assert (result.status, result.reason) == (FAILED, words)


def test_another_seed_than_declared_is_a_failure(build: ModuleType) -> None:
    reports = (ranks(("alpha", 0, 2))[0].model_copy(update={"seed": 7}), *ranks(("beta", 1, 2)))
    result = one(ran_world_size(build.facts(ranks={build.TRAIN: reports}), CONTEXT))
    assert (result.status, result.reason) == (FAILED, "rank 0 on alpha used seed 7; declared: 2026")


def test_a_rank_that_logged_nothing_is_reported(build: ModuleType) -> None:
    facts = build.facts(measurements=tuple(m for m in build.measurements() if m.rank != 1))
    result = one(ran_world_size(facts, CONTEXT))
    assert (result.status, result.reason) == (FAILED, "rank 1 of 2 logged no iteration")


def test_suites_that_print_no_rank_are_judged_by_logs_and_processes(build: ModuleType) -> None:
    only_rank_0_logs = tuple(m for m in build.measurements() if m.rank != 1)
    result = one(ran_world_size(build.facts(ranks={}, measurements=only_rank_0_logs), CONTEXT))
    assert (result.status, "logs and process tables" in result.reason) == (PASS, True)
    records = tuple(r.model_copy(update={"peak_rss_bytes": {}}) for r in build.records())
    observed = build.facts(ranks={}, measurements=only_rank_0_logs, records=records)
    assert one(ran_world_size(observed, CONTEXT)).status is PASS
    records = tuple(r.model_copy(update={"observed": None}) for r in records)
    facts = build.facts(ranks={}, measurements=only_rank_0_logs, records=records)
    result = one(ran_world_size(facts, CONTEXT))
    assert (result.status, result.reason) == (
        OPEN,
        "no process reported its rank; no log or process of rank 1 of 2 was found",
    )


@pytest.mark.parametrize(("world", "status"), [(0, PASS), (2, PASS), (1, FAILED), (4, FAILED)])
def test_suites_without_printed_ranks_are_judged_by_their_launchers(
    build: ModuleType, world: int, status: Status
) -> None:
    """Two trainings of one rank each leave logs of the ranks 0 and 1, as one training of two ranks does."""
    records = tuple(
        one.model_copy(update={"world_size": world}) if one.step == build.TRAIN else one for one in build.records()
    )
    result = one(ran_world_size(build.facts(ranks={}, records=records), CONTEXT))
    assert result.status is status
    if status is FAILED:
        words = f"the launcher on alpha set world size {world}; declared: 2"
        assert result.reason == words
    assert one(ran_world_size(build.facts(records=records), CONTEXT)).status is PASS, (
        "the processes say it themselves"
    )


def test_a_training_that_failed_is_not_judged_twice(build: ModuleType) -> None:
    facts = build.facts(step_status=with_status(build, TRAIN=FAILED), ranks={})
    assert one(ran_world_size(facts, CONTEXT)).status is OPEN


def engines(build: ModuleType, **changes: str) -> Facts:
    key = f"{build.INFER}/{build.ON}"
    return build.facts(engine={**build.facts().engine, key: {**build.engine(True), **changes}}, autolog={})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"onednn": "False"}, "declared onednn=True, ran with onednn=False"),
        ({"onednn": "0"}, "declared onednn=True, ran with onednn=0"),
        ({"precision": "fp16"}, "declared precision=fp32, ran with precision=fp16"),
        ({"threads": "2"}, "declared threads=1, ran with threads=2"),
        (
            {"batch_size": "4", "device": "gpu:0"},
            "declared device=cpu, ran with device=gpu:0; declared batch_size=1, ran with batch_size=4",
        ),
    ],
)
def test_another_engine_than_declared_is_a_failure(build: ModuleType, changes: dict[str, str], words: str) -> None:
    wrong, good = ran_engine(engines(build, **changes), CONTEXT)
    assert (wrong.status, wrong.leg, wrong.reason) == (FAILED, build.ON, words)
    assert (good.status, good.reason) == (PASS, "1 legs ran as declared")


def test_switches_are_compared_by_meaning(build: ModuleType) -> None:
    assert one(ran_engine(engines(build, onednn="1", device="cpu:0"), CONTEXT)).status is PASS


def test_engine_check_without_evidence_is_open(build: ModuleType) -> None:
    result = one(ran_engine(build.facts(engine={}, autolog={}), CONTEXT))
    assert result.status is OPEN
    assert f"{build.ON} (device, onednn, precision, threads, batch_size)" in result.reason


def test_leg_with_an_empty_log_has_no_evidence_of_execution(build: ModuleType) -> None:
    """Exit code 0 and an empty log: what a script does that catches its own errors."""
    silent = build.facts(engine={}, autolog={}, predictions={})
    for leg, result in zip((build.ON, build.OFF), ran_engine(silent, CONTEXT), strict=True):
        assert (result.status, result.step, result.leg) == (FAILED, build.INFER, leg)
        assert result.reason.startswith(f"leg {leg}: log contains no evidence of execution")
    empty = {f"{build.INFER}/{leg}": {} for leg in (build.ON, build.OFF)}
    assert len(ran_engine(build.facts(engine=empty, autolog=empty, predictions=empty), CONTEXT)) == 2


@pytest.mark.parametrize(
    ("step", "unread", "expected", "words"),
    [
        (Status.INFRA_FAILURE, (), OPEN, "the step ended as infra_failure, its log may not be complete"),
        (Status.CANCELLED, (), OPEN, "the step ended as cancelled"),
        (
            PASS,
            ("3.0 MB of its log were not fetched",),
            Status.INFRA_FAILURE,
            "3.0 MB of its log were not fetched",
        ),
        (FAILED, (), FAILED, "log contains no evidence of execution"),
    ],
    ids=["lost node", "cancelled", "unread log", "another leg failed"],
)
def test_a_log_that_was_not_fetched_accuses_no_leg(
    build: ModuleType, step: Status, unread: tuple[str, ...], expected: Status, words: str
) -> None:
    """Seen when a node was lost between two legs: the first had passed, its log was still on the node."""
    honest = build.facts()
    facts = build.facts(
        engine={},
        autolog={},
        predictions={},
        step_status={**honest.step_status, build.INFER: step},
        cut={build.INFER: unread} if unread else {},
    )
    for result in ran_engine(facts, CONTEXT):
        assert result.status is expected
        assert words in result.reason


@pytest.mark.parametrize("kept", ["engine", "autolog", "predictions"])
def test_any_evidence_shows_that_a_leg_ran(build: ModuleType, kept: str) -> None:
    gone = {name: {} for name in {"engine", "autolog", "predictions"} - {kept}}
    assert FAILED not in {result.status for result in ran_engine(build.facts(**gone), CONTEXT)}


def test_a_silent_leg_among_others_is_found(build: ModuleType) -> None:
    key = LegKey(build.INFER, build.OFF)
    left = {
        name: {at: output for at, output in getattr(build.facts(), name).items() if at != key}
        for name in ("engine", "autolog", "predictions")
    }
    wrong, good = ran_engine(build.facts(**left), CONTEXT)
    assert (wrong.status, wrong.leg) == (FAILED, build.OFF)
    assert (good.status, good.values["legs"]) == (PASS, [build.ON])


def test_a_leg_that_did_not_pass_is_not_judged(build: ModuleType) -> None:
    statuses = dict.fromkeys(build.facts().leg_status, FAILED)
    facts = build.facts(engine={}, autolog={}, predictions={}, leg_status=statuses)
    assert ran_engine(facts, CONTEXT) == []


def test_autolog_replaces_a_missing_engine_line(build: ModuleType) -> None:
    fields = {
        "runtime_device": "cpu", "enable_mkldnn": "True", "cpu_math_library_num_threads": "1", "batch_size": "1",
        "precision": "fp32",
    }  # fmt: skip
    keys = [f"{build.INFER}/{leg}" for leg in (build.ON, build.OFF)]
    wrong, good = ran_engine(build.facts(engine={}, autolog=dict.fromkeys(keys, fields)), CONTEXT)
    assert (wrong.leg, wrong.reason) == (build.OFF, "declared onednn=False, ran with onednn=True")
    assert good.values["legs"] == [build.ON]


def test_a_reported_precision_proves_only_a_difference(build: ModuleType) -> None:
    plan = build.plan()
    steps = tuple(
        step.model_copy(update={"legs": tuple(leg.model_copy(update={"precision": "int8"}) for leg in step.legs)})
        for step in plan.steps
    )
    silent = {
        key: {k: v for k, v in report.items() if k != "precision"} for key, report in build.facts().engine.items()
    }
    report = {key: {"precision": "int8"} for key in build.facts().engine}
    facts = build.facts(plan=plan.model_copy(update={"steps": steps}), engine=silent, autolog=report)
    assert one(ran_engine(facts, CONTEXT)).status is OPEN
    lied = facts.model_copy(update={"autolog": {key: {"precision": "fp32"} for key in report}})
    assert {result.status for result in ran_engine(lied, CONTEXT)} == {FAILED}


def gpu_leg(build: ModuleType, **really: str) -> CheckResult:
    """A leg on a GPU with TensorRT that reports the precision and device it used."""
    infer = next(step for step in build.plan().steps if step.id == build.GPU)
    leg = infer.legs[0].model_copy(update={"not_run": "", "tensorrt": True, "onednn": False})
    steps = tuple(
        step.model_copy(update={"not_run": "", "legs": (leg,)}) if step.id == build.GPU else step
        for step in build.plan().steps
        if step.id != build.INFER
    )
    key = f"{build.GPU}/{leg.id}"
    output = {"device": "gpu:0", "tensorrt": "True", "precision": "fp32", "batch_size": "1", **really}
    facts = build.facts(plan=build.plan(steps=steps), leg_status={key: PASS}, engine={key: output}, autolog={})
    return one(ran_engine(facts, CONTEXT))


def test_tensorrt_must_really_be_active(build: ModuleType) -> None:
    assert gpu_leg(build).status is PASS
    assert gpu_leg(build, onednn="True").status is PASS, "oneDNN is nothing to a GPU"
    wrong = gpu_leg(build, tensorrt="False")
    assert (wrong.status, wrong.reason) == (FAILED, "declared tensorrt=True, ran with tensorrt=False")
    assert gpu_leg(build, device="cpu").reason == "declared device=gpu, ran with device=cpu"
    silent = gpu_leg(build, tensorrt="")
    assert (silent.status, "(tensorrt)" in silent.reason) == (OPEN, True)
