"""A run as its tasks do it, without a scheduler: each task has its own view of the database, as a process has."""

import threading
from collections.abc import Callable
from pathlib import Path

from tests.support.certify import MODE, PARAMS, Site

from tipcflow.domain import Plan, Run, Status, StepKind, new_run_id
from tipcflow.execute.progress import Event, Kind
from tipcflow.execute.request import RunRequest
from tipcflow.execute.run import opening
from tipcflow.execute.run import phases as task_phases
from tipcflow.execute.run.context import TaskContext
from tipcflow.execute.run.step import StepTask
from tipcflow.transport.connect import connect

DEADLINE_S = 90.0


class Tasks:
    """The tasks of one run."""

    def __init__(self, site: Site) -> None:
        self.site = site
        # Of its own: the nodes of all tests are the same, and an attempt is never started twice.
        self.run = new_run_id("toy")
        self.home: Path = site.home
        self.events: list[Event] = []
        self.store = site.store()
        site.configure_policy(waits={"reconnect_s": 5})

    def request(self, **changes: object) -> RunRequest:
        fields: dict[str, object] = {"params": "/".join(PARAMS.split("/")[-2:]), "suite": "toy", "mode": MODE}
        fields |= {"cluster": "local", "config_dir": self.site.configs, "owner": "test"}
        return RunRequest(**{**fields, **changes})  # type: ignore[arg-type]

    def context(self) -> TaskContext:
        """A task's own view."""
        return TaskContext(self.run, self.site.store(), self.home, connect, self.events.append)

    @property
    def plan(self) -> Plan:
        return self.store.plans.get(self.run)

    def resolve(self, **changes: object) -> Plan:
        return opening.resolve_run(self.store, self.run, self.request(**changes), home=self.home)

    def begin(self, **changes: object) -> None:
        """resolve and acquire."""
        self.resolve(**changes)
        context = self.context()
        assert context.acquire() == ""
        task_phases.prepare_nodes(context)

    def step(
        self, kind: StepKind, *nodes: str, generation: int = 0, cleared: int | None = None
    ) -> dict[str, tuple[Status, str]]:
        """The tasks of a step on these nodes (all of its nodes, without one), at the same time."""
        step = next(step for step in self.plan.steps if step.kind is kind)
        turn = (generation or -1) if cleared is None else cleared
        result: dict[str, tuple[Status, str]] = {}

        def task(node: str) -> None:
            context = self.context()
            with context.nodes(*step.nodes) as made:
                part = StepTask(context, step, (node,), made, generation=generation, cleared=turn)
                while True:
                    part.begin()
                    assert part.watch(DEADLINE_S)
                    result[node] = part.end()
                    if not part.try_again():
                        break

        threads = [threading.Thread(target=task, args=(node,)) for node in nodes or step.nodes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
        return result

    def finish(self) -> Run:
        """collect, release, judge and verdict."""
        context = self.context()
        task_phases.collect_run(context)
        task_phases.release_run(context)
        task_phases.judge_run(context)
        return task_phases.finish_run(context)

    def with_part(self, kind: StepKind, node: str, do: Callable[[StepTask], object]) -> None:
        """Run one task's part of a step with the given behavior."""
        step = next(step for step in self.plan.steps if step.kind is kind)
        context = self.context()
        with context.nodes(*step.nodes) as made:
            do(StepTask(context, step, (node,), made))

    def lines(self, node: str) -> str:
        """The log lines that were shown of a node."""
        return "".join(event.text for event in self.events if event.kind is Kind.LOG and event.node == node)
