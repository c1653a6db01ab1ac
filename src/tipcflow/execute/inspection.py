"""The nodes are asked what they are; what they can do settles the plan."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tipcflow.domain import NodeFacts, Plan
from tipcflow.execute import preflight
from tipcflow.execute.environment import environment_class
from tipcflow.execute.nodes import Nodes
from tipcflow.execute.resolve import Resolved

if TYPE_CHECKING:
    from tipcflow.store import Store


def inspect(
    store: "Store", run_id: str, resolved: Resolved, nodes: Nodes, note: Callable[[str], None]
) -> list[NodeFacts]:
    """Ask every node what it is and whether it reaches the others; kept with the run.

    Raises:
        InfraError: something makes the run impossible; it names the node.
    """
    note("asking the nodes what they are, and whether they reach each other")
    facts = nodes.facts()
    for fact in facts:
        store.save_node_facts(run_id, fact)
    wish = resolved.request.framework
    requirement = preflight.parse_framework(wish) if wish else None
    warnings = preflight.check_nodes(
        resolved.cluster, facts, framework=resolved.suite.framework, requirement=requirement
    )
    for line in warnings:
        note(line)
    return facts


def settle(store: "Store", run_id: str, resolved: Resolved, facts: list[NodeFacts]) -> Plan:
    """The plan with what the nodes' CPUs can do; stored, and never changed again."""
    flags = {fact.node: frozenset(fact.cpu_flags) for fact in facts if "machine" not in fact.unfinished}
    plan = resolved.plan(run_id, flags)
    store.replace_plan(run_id, plan)
    used = [fact for fact in facts if fact.node in plan.nodes]
    device = resolved.cluster.node(plan.nodes[0]).device
    world = max((variant.world_size for variant in plan.variants), default=1)
    framework = next((f"{fact.framework} {fact.framework_version}" for fact in used if fact.framework), "")
    store.update_run(
        run_id,
        environment=environment_class(used, device=device, world_size=world),
        framework=framework,
    )
    return plan
