"""Every step and every gang has a deadline, and a step that is cut reports it."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import a_plan, a_run, open_store
from tests.unit.execute.attempt.test_drive import ScriptedNode, driver, members
from tests.unit.execute.resolve.test_planning import PARAMS, TOY

from tipcflow.config.policy import Policy
from tipcflow.config.run_documents import PolicyDocument, SuiteDocument
from tipcflow.config.suite import Suite
from tipcflow.domain import Command, EndReason, ExitRecord, FailureClass, InfraError, Leg, Node, Status
from tipcflow.execute.failure.diagnosis import LogDiagnosis
from tipcflow.execute.failure.outcome import leg_outcome, legs_outcome, whole_job
from tipcflow.execute.job.spec import job_spec
from tipcflow.execute.progress import silent
from tipcflow.execute.request import RequestDocument, RunRequest
from tipcflow.execute.resolve.planning import make_plan
from tipcflow.execute.run.context import TaskContext
from tipcflow.execute.run.phases import run_steps
from tipcflow.execute.source.snapshot import take_snapshot

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("compat", ["spec", "bash"])
def test_every_job_of_a_plan_has_the_policys_deadline(tmp_path: Path, compat: str) -> None:
    suite = Suite(name="toy", folder=str(TOY), dialects=("models/template",), seed_argument="--seed={seed}")
    fields: dict[str, Any] = {"mode": "lite_train_lite_infer", "cluster": "", "config_dir": tmp_path}
    request = RunRequest(params=PARAMS, suite="toy", compat=compat, **fields)  # type: ignore[arg-type]
    snapshot = take_snapshot(suite, PARAMS, None, cache=tmp_path)
    plan = make_plan(request, suite, None, snapshot, run="r", step_deadline_s=77.0)
    kinds = {step.kind for step in plan.steps}
    assert len(kinds) > 3
    for step in plan.steps:
        node = Node(name=step.nodes[0], address="192.0.2.1", python="/usr/bin/python3", workspace="/w")
        spec = job_spec(plan, step, node, run="r", attempt=1, fence=1)
        assert (spec.deadline_s, spec.lease_s, spec.barrier_s) == (77.0, 600.0, 120.0), step.id


def test_the_policies_deadlines_are_finite() -> None:
    for key in ("budget_minutes", "step_deadline_minutes"):
        for wrong in (0, -1, float("inf"), float("nan")):
            with pytest.raises(ValueError, match=key):
                Policy.model_validate({"name": "p", key: wrong})


def test_steps_after_the_end_of_the_runs_budget_are_not_started(tmp_path: Path) -> None:
    plan, policy = a_plan(), Policy(name="p", budget_minutes=1)
    suite = Suite(name="toy", folder=str(TOY), dialects=("models/template",))
    with open_store(tmp_path / "tipcflow.db") as store:
        run = a_run()
        store.runs.create(run, plan)
        fields: dict[str, Any] = {"mode": "m", "cluster": "", "config_dir": tmp_path, "ends_at": 1.0}
        request = RunRequest(params=PARAMS, suite="toy", **fields)
        for document in (RequestDocument(request), PolicyDocument(policy), SuiteDocument(suite)):
            store.documents.put(run.id, document)
        context = TaskContext(run.id, store, tmp_path, connect=None, report=silent)  # type: ignore[arg-type]
        run_steps(context, None, cancel=threading.Event())  # type: ignore[arg-type]
        result = store.steps.statuses(run.id)
        failures = store.history.facts(run.id).failures
    assert set(result) == {step.id for step in plan.steps}
    first = [step.id for step in plan.steps if not step.after]
    assert {step: one.failure_class for step, one in failures.items()} == dict.fromkeys(first, FailureClass.BUDGET)
    assert {result[step] for step in first} == {
        (Status.INFRA_FAILURE, "not started: the run's budget of 60 s is used up")
    }
    assert {result[step.id][0] for step in plan.steps if step.after} <= {Status.BLOCKED, Status.NOT_RUN}


class Silent(ScriptedNode):
    """A node that ends its job only when it is stopped, whatever the deadline."""

    def __init__(self, name: str, *, stages: bool = True) -> None:
        super().__init__(name)
        self.stages = stages

    def begin(self, spec: Any, resume: Any, seconds: float) -> Any:
        yield {"event": "response", "state": "staged" if self.stages else "staging"}
        yield from self.watch(spec, resume, seconds)

    def poll(self, spec: Any) -> dict[str, Any]:
        if not self.stopped.is_set():
            return {"state": "staged" if self.stages else "staging"}
        return {"state": "ended", "record": self.end(spec, reason=EndReason.STOPPED)["record"]}

    def watch(self, spec: Any, resume: Any, seconds: float) -> Any:
        assert self.stopped.wait(60)
        yield self.end(spec, reason=EndReason.STOPPED)


def short(*nodes: ScriptedNode) -> Any:
    made = members(*nodes)
    for member in made:
        member.spec = member.spec.model_copy(update={"barrier_s": 0.2, "deadline_s": 0.2})
    return made


def test_a_gang_whose_nodes_keep_no_deadline_is_inspected_and_ended() -> None:
    nodes = (Silent("a"), Silent("b"))
    looked: list[bool] = []
    until = time.monotonic() + 0.4
    driven = driver(
        short(*nodes),
        is_late=lambda: time.monotonic() > until,
        gather=lambda: looked.append(any(node.stopped.is_set() for node in nodes)),
    )
    driven.start_gang(60)
    assert driven.watch(60)
    assert {node.reason for node in nodes} == {"no exit record in time"}
    assert looked == [False]


def test_gang_staged_too_late_never_starts() -> None:
    ready, late = Silent("a"), Silent("b", stages=False)
    with pytest.raises(InfraError, match=r"node b was not ready within 0.2 s"):
        driver(short(ready, late)).start_gang(60)
    assert (ready.reason, ready.went.is_set()) == ("a peer could not be staged", False)


def test_legs_that_a_deadline_has_cut_are_reported() -> None:
    command = Command(text="true")
    legs = [Leg(id=name, command=command, device="cpu") for name in ("done", "cut", "never")]
    (member,) = members(ScriptedNode("a"))
    known: dict[str, Any] = {"run": "r", "step": "v/infer", "node": "a"}
    late = {"reason": EndReason.DEADLINE, "message": "not done within 600 s"}
    member.legs = {
        "done": ExitRecord(leg="done", exit_code=0, reason=EndReason.EXITED, **known),
        "cut": ExitRecord(leg="cut", **late, **known),
    }
    member.record = ExitRecord(**late, **known)
    result = [leg_outcome(leg, member, LogDiagnosis(), cancelled=False) for leg in legs]
    assert [one.status for one in result] == [Status.PASS, Status.FAILED, Status.BLOCKED]
    assert result[1].reason == "not done within 600 s on node a"
    assert result[2].reason == "not started: not done within 600 s"
    step = legs_outcome(result, whole_job(member, cancelled=False))
    assert step.status is Status.FAILED
    assert step.failure
    assert step.failure.failure_class is FailureClass.TIMEOUT
