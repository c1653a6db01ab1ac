"""Every step and every gang has a deadline, and what is cut is said."""

import threading
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import a_plan, a_run
from tests.unit.execute.attempt.test_gang import ToldNode, members
from tests.unit.execute.resolve.test_planning import PARAMS, TOY

from tipcflow.config.policy import Policy
from tipcflow.config.suite import Suite
from tipcflow.domain import Command, EndReason, ExitRecord, FailureClass, InfraError, Leg, Node, Status
from tipcflow.execute.attempt import gang
from tipcflow.execute.attempt.gang import Gang
from tipcflow.execute.attempt.steps import StepRunner
from tipcflow.execute.failure.diagnosis import Telling
from tipcflow.execute.failure.outcome import leg_outcome, legs_outcome, whole_job
from tipcflow.execute.job.spec import job_spec
from tipcflow.execute.progress import silent
from tipcflow.execute.request import RunRequest
from tipcflow.execute.resolve.planning import make_plan
from tipcflow.execute.source.snapshot import take_snapshot
from tipcflow.store import Store


@pytest.mark.parametrize("compat", ["spec", "bash"])
def test_every_job_of_a_plan_has_the_policys_deadline(tmp_path: Path, compat: str) -> None:
    suite = Suite(name="toy", folder=str(TOY), dialects=("models/template",), seed_argument="--seed={seed}")
    wishes: dict[str, Any] = {"mode": "lite_train_lite_infer", "cluster": "", "config_dir": tmp_path}
    request = RunRequest(params=PARAMS, suite="toy", compat=compat, **wishes)  # type: ignore[arg-type]
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


def test_what_comes_after_the_runs_budget_is_not_started_and_said(tmp_path: Path) -> None:
    plan = a_plan()
    with Store.open(f"sqlite:///{tmp_path}/tipcflow.db") as store:
        run = a_run()
        store.create_run(run, plan)
        StepRunner(
            plan,
            nodes=None,  # type: ignore[arg-type]
            store=store,
            run=run.id,
            home=tmp_path,
            fence=1,
            listener=silent,
            cancel=threading.Event(),
            budget_s=0.0,
            log_format="models",
            policy=Policy(name="p"),
        ).run()
        said = store.step_statuses(run.id)
    assert set(said) == {step.id for step in plan.steps}
    first = [step.id for step in plan.steps if not step.after]
    assert {said[step] for step in first} == {
        (Status.INFRA_FAILURE, "not started: the run's budget of 0 min is used up")
    }
    assert {said[step.id][0] for step in plan.steps if step.after} <= {Status.BLOCKED, Status.NOT_RUN}


class Silent(ToldNode):
    """A node that ends its job only when it is told to, whatever the deadline."""

    def __init__(self, name: str, *, stages: bool = True) -> None:
        super().__init__(name)
        self.stages = stages

    def watch(self, spec: Any, resume: Any, seconds: float) -> Any:
        if self.stages:
            yield {"event": "state", "state": "staged"}
        assert self.stopped.wait(60)
        yield self.end(spec, reason=EndReason.STOPPED)


def short(*nodes: ToldNode) -> Any:
    made = members(*nodes)
    for member in made:
        member.spec = member.spec.model_copy(update={"barrier_s": 0.2, "deadline_s": 0.2})
    return made


def test_a_gang_whose_nodes_keep_no_deadline_is_looked_at_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gang, "SLACK_S", 0.2)
    nodes = (Silent("a"), Silent("b"))
    looked: list[bool] = []
    Gang(
        short(*nodes), threading.Event(), look=lambda: looked.append(any(node.stopped.is_set() for node in nodes))
    ).run()
    assert {node.reason for node in nodes} == {"no exit record in time"}
    assert looked == [False]


def test_a_gang_that_is_not_staged_in_time_never_starts() -> None:
    ready, late = Silent("a"), Silent("b", stages=False)
    with pytest.raises(InfraError, match=r"node b was not ready within 0 s"):
        Gang(short(ready, late), threading.Event()).run()
    assert (ready.reason, ready.went.is_set()) == ("node b was not staged in time", False)


def test_legs_that_a_deadline_has_cut_are_said() -> None:
    command = Command(text="true")
    legs = [Leg(id=name, command=command, device="cpu") for name in ("done", "cut", "never")]
    (member,) = members(ToldNode("a"))
    known: dict[str, Any] = {"run": "r", "step": "v/infer", "node": "a"}
    late = {"reason": EndReason.DEADLINE, "message": "not done within 600 s"}
    member.legs = {
        "done": ExitRecord(leg="done", exit_code=0, reason=EndReason.EXITED, **known),
        "cut": ExitRecord(leg="cut", **late, **known),
    }
    member.record = ExitRecord(**late, **known)
    said = [leg_outcome(leg, member, Telling(), cancelled=False) for leg in legs]
    assert [one.status for one in said] == [Status.PASS, Status.FAILED, Status.BLOCKED]
    assert said[1].reason == "not done within 600 s on node a"
    assert said[2].reason == "not started: not done within 600 s"
    step = legs_outcome(said, whole_job(member, cancelled=False))
    assert step.status is Status.FAILED
    assert step.failure
    assert step.failure.failure_class is FailureClass.TIMEOUT
