"""A node's part of one kind of steps: prepare, train, eval, export, infer_cpu, infer_gpu."""

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from operators.base import RunOperator
from operators.groups import before_on_its_slots, steps_of, why_nothing
from operators.triggers import JobTrigger, StepTrigger
from tipcflow.domain import Status, Step, StepKind, TipcflowError
from tipcflow.execute.gang import SLACK_S
from tipcflow.remote import paths

if TYPE_CHECKING:
    from tipcflow.execute.step_task import StepTask
    from tipcflow.execute.task_context import TaskContext

# A step that ends sooner never leaves its worker; a longer one is watched by the triggerer.
INLINE_S = 15.0
# Where a run keeps until when a step waits for another one.
WAITS = "waits"
LOOK_S = 0.5
# Airflow kills a task 5 s after it was told to end.
KILL_S = 4.0


class StepOperator(RunOperator):
    """Does the steps of one kind and one group of variants, on one node.

    Args:
        kind: which steps.
        group, variants: which variants (`operators.groups.steps_of`).
        node: the node's name for tasks that are mapped over nodes; None for the step's own first node.
    """

    template_fields = ("node",)

    def __init__(
        self, *, kind: str, group: int = 0, variants: Sequence[str] = (), node: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.kind = kind
        self.group = group
        self.variants = tuple(variants)
        self.node = node
        self._task: StepTask | None = None

    def work(self, run: "TaskContext", context: Context) -> None:
        """Do the steps from the first on."""
        steps = self._steps(run)
        if not steps:
            raise AirflowSkipException(
                why_nothing(run.plan, StepKind(self.kind), self.group, self.variants, self.node)
            )
        self._do(run, context, steps, None)

    def resume(self, context: Context, event: dict[str, Any]) -> None:
        """Called by Airflow when a job that was watched by the triggerer has ended."""
        with self.opened(context) as run:
            steps = self._steps(run)
            at = [step.id for step in steps].index(event["step"])
            self._do(run, context, steps[at:], event["resume"])

    def on_kill(self) -> None:
        """A person marked or cleared the task: all members of the attempt are stopped."""
        if self._task is not None:
            # In a thread, for a node that does not answer must not hold this up; the run's release looks again.
            stopping = threading.Thread(target=self._task.stop, args=("stopped from Airflow",), daemon=True)
            stopping.start()
            stopping.join(KILL_S)

    def _steps(self, run: "TaskContext") -> list[Step]:
        steps = steps_of(run.plan, StepKind(self.kind), self.group, self.variants)
        return [step for step in steps if self.node is None or self.node in step.nodes]

    def _do(self, run: "TaskContext", context: Context, steps: list[Step], resume: dict[str, int] | None) -> None:
        # Airflow raises it when a task is cleared, and leaves it as it is when a task is tried again.
        generation = int(context["ti"].max_tries) + 1
        ended = []
        for step in steps:
            ended.append(self._one(run, step, resume, generation))
            resume = None
        bad = [said for said in ended if said[0] is not Status.PASS]
        worst = max(bad, key=lambda said: said[0].severity, default=None)
        if worst is None:
            return
        status, reason = worst
        if all(word in (Status.NOT_RUN, Status.BLOCKED) for word, _ in bad) and len(bad) == len(ended):
            raise AirflowSkipException(f"{status.value}: {reason}")
        raise AirflowFailException(f"{status.value}: {reason}")

    def _one(
        self, run: "TaskContext", step: Step, resume: dict[str, int] | None, generation: int
    ) -> tuple[Status, str]:
        from tipcflow.execute.needs import why_not
        from tipcflow.execute.step_task import StepTask
        from tipcflow.execute.task_phases import failed_by_us, over_budget, settle_needs

        settle_needs(run, step)
        left_out = why_not(step, run.statuses()) or over_budget(run)
        if left_out is not None and run.store.open_attempt_number(run.run, step.id) is None:
            run.closer.leave_out(step, *left_out)
            return left_out
        self._wait_for_slots(run, step, generation)
        node = self.node or step.nodes[0]
        run.keep_lease(step.deadline_s + SLACK_S)
        try:
            with run.nodes(*step.nodes) as nodes:
                self._task = StepTask(run, step, node, nodes, resume=resume, generation=generation)
                self._task.begin()
                if not self._task.watch(INLINE_S):
                    self._defer(run, step, self._task)
                return self._task.end()
        except TipcflowError:
            raise
        except Exception as error:
            failed_by_us(run, step.id, error)
            raise
        finally:
            self._task = None

    def _wait_for_slots(self, run: "TaskContext", step: Step, generation: int) -> None:
        """Until the CPU inference on the same slots has ended; deferred, when that takes longer."""
        first = before_on_its_slots(run.plan, step)
        if first is None or run.store.open_attempt_number(run.run, step.id) is not None:
            return
        begun = time.monotonic()
        deadline = float((run.store.document(run.run, WAITS) or {}).get(f"{step.id} {generation}", 0.0))
        if not deadline:
            deadline = time.time() + first.deadline_s + SLACK_S
            run.store.merge_document(run.run, WAITS, {f"{step.id} {generation}": deadline})
            run.note(f"{step.id} begins when {first.id}, which has the same slots, has ended")
        while first.id not in run.statuses() and time.time() < deadline:
            if time.monotonic() - begun > INLINE_S:
                trigger = StepTrigger(run=run.run, step=step.id, awaited=first.id, until=deadline)
                self.defer(trigger=trigger, method_name="resume")
            time.sleep(LOOK_S)

    def _defer(self, run: "TaskContext", step: Step, task: "StepTask") -> None:
        spec = task.mine.spec
        peers = [
            [run.cluster.node(peer.node).model_dump(mode="json"), _job(run, peer.node, step, task.attempt)]
            for peer in task.specs
        ]
        trigger = JobTrigger(
            run=run.run,
            step=step.id,
            node=run.cluster.node(spec.node).model_dump(mode="json"),
            job=_job(run, spec.node, step, task.attempt),
            peers=peers,
            resume=task.mine.log_bytes,
            until=time.time() + spec.barrier_s + spec.deadline_s + SLACK_S,
            lost_after_s=run.request.reconnect_s,
        )
        run.note(f"{step.id} on node {spec.node} goes on; the triggerer watches it")
        self.defer(trigger=trigger, method_name="resume")


def _job(run: "TaskContext", node: str, step: Step, attempt: int) -> str:
    return paths.job_dir(run.cluster.node(node), run.run, step.id, attempt)
