"""Deployment to the nodes before a run's first step."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.domain import Plan, StepKind
from tipcflow.execute.node.nodes import Nodes
from tipcflow.execute.resolve.resolve import Resolved
from tipcflow.execute.source.wheel import kept_wheel

if TYPE_CHECKING:
    from tipcflow.store import Store


def deploy(store: "Store", run: str, resolved: Resolved, plan: Plan, nodes: Nodes, *, home: Path) -> None:
    """Install the suite's code on every node; for a confirmed evaluation also what the confirmed run trained.

    The confirmed run has no verdict yet, and its folders stay on the nodes until it has one.

    Raises:
        InfraError: a node rejects the files, or no longer has the trained files.
    """
    request, snapshot, suite = resolved.request, resolved.snapshot, resolved.suite
    if request.evaluates:
        confirmed = store.plans.get(request.confirms)
        for name in dict.fromkeys(node for step in plan.steps for node in step.nodes):
            node_steps = [step for step in plan.steps if name in step.nodes]
            nodes[name].inherit(
                run,
                request.confirms,
                snapshot.sha256,
                needs=_weights(confirmed, [step.id for step in node_steps]),
                without=[step.commands[name].log for step in node_steps if step.commands[name].log],
                below=suite.below,
            )
    if resolved.build and resolved.build.wheel:
        nodes.put_wheel(kept_wheel(home, resolved.build), resolved.build)
    cached = suite.downloads == "cached"
    nodes.deploy(run, snapshot.archive, snapshot.sha256, below=suite.below, cached=cached)


def _weights(plan: Plan, evaluations: Sequence[str]) -> list[str]:
    """Return what the trainings that these steps need have written, as globs relative to the suite's root."""
    needed = [plan.step(need) for step in evaluations for need in plan.step(step).after]
    return [pattern for step in needed if step.kind is StepKind.TRAIN for pattern in step.expects]
