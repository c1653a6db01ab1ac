"""Deployment to the nodes before a run's first step."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tipcflow.domain import Plan, StepKind
from tipcflow.execute.node.nodes import Nodes
from tipcflow.execute.resolve.resolve import Resolved

if TYPE_CHECKING:
    from tipcflow.store import Store


def deploy(store: "Store", run: str, resolved: Resolved, plan: Plan, nodes: Nodes) -> None:
    """Install the suite's code on every node; for a confirmed evaluation also what the confirmed run trained.

    The confirmed run has no verdict yet, and its folders stay on the nodes until it has one.

    Raises:
        InfraError: a node rejects the files, or no longer has the trained files.
    """
    request, snapshot = resolved.request, resolved.snapshot
    if request.evaluates:
        confirmed = store.plan(request.confirms)
        for name in dict.fromkeys(node for step in plan.steps for node in step.nodes):
            mine = [step for step in plan.steps if name in step.nodes]
            nodes[name].inherit(
                run,
                request.confirms,
                snapshot.sha256,
                needs=_weights(confirmed, [step.id for step in mine]),
                without=[step.commands[name].log for step in mine if step.commands[name].log],
            )
    nodes.deploy(run, snapshot.archive, snapshot.sha256)


def _weights(plan: Plan, evaluations: Sequence[str]) -> list[str]:
    """Return what the trainings that these steps need have written, as globs relative to the suite's root."""
    needed = [plan.step(need) for step in evaluations for need in plan.step(step).after]
    return [one for step in needed if step.kind is StepKind.TRAIN for one in step.expects]
