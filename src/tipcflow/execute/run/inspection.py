"""Collect the facts of the nodes and settle the plan with them."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

from tipcflow.domain import Cluster, Compat, InfraError, NodeFacts, Plan
from tipcflow.domain.run.names import FrameworkVersion
from tipcflow.domain.run_documents import BuildDocument
from tipcflow.execute.node import builds, preflight
from tipcflow.execute.node.environment import environment_class
from tipcflow.execute.node.nodes import Nodes
from tipcflow.execute.resolve.expects import keep_expected
from tipcflow.execute.resolve.planning import start_port
from tipcflow.execute.resolve.resolve import Resolved

if TYPE_CHECKING:
    from tipcflow.store import Store


def inspect(
    store: "Store", run_id: str, resolved: Resolved, nodes: Nodes, note: Callable[[str], None]
) -> tuple[Resolved, list[NodeFacts]]:
    """Collect and store the facts of every node, including its reachability of the others.

    Returns:
        (the request with the framework build that it installs, the facts as the steps find them).

    Raises:
        InfraError: a node makes the run impossible; the error names it.
    """
    note("collecting node facts and checking connectivity between nodes")
    facts = nodes.facts()
    if late := _late(resolved.cluster, facts):
        note(f"{'; '.join(late)}; retrying once")
        facts = nodes.facts()
    framework = resolved.request.framework
    requirement = preflight.parse_framework(framework) if framework else None
    resolved, facts = _with_build(store, run_id, resolved, facts, requirement, note)
    for fact in facts:
        store.nodes.save(run_id, fact)
    _check_missed_peers(resolved.cluster, facts, nodes)
    warnings = preflight.check_nodes(
        resolved.cluster, facts, framework=resolved.suite.framework, requirement=requirement
    )
    for line in warnings:
        note(line)
    return resolved, facts


def _late(cluster: Cluster, facts: Sequence[NodeFacts]) -> list[str]:
    """Return a line per node that did not report its machine, or what the run needs: most are only busy."""
    lines = []
    for fact in facts:
        parts = preflight.late_parts(cluster.node(fact.node), fact)
        parts += ["machine"] if "machine" in fact.unfinished else []
        if parts:
            lines.append(preflight.late_line(fact.node, parts))
    return lines


def _check_missed_peers(cluster: Cluster, facts: Sequence[NodeFacts], nodes: Nodes) -> None:
    """Probe the nodes that another node cannot reach; one that the controller cannot reach either is the cause.

    Raises:
        InfraError: a node does not respond.
    """
    names = {node.address: node.name for node in cluster.nodes}
    missed = {names[peer]: fact.node for fact in facts for peer in fact.unreachable if peer in names}
    for name, other in missed.items():
        try:
            nodes[name].check_responds()
        except InfraError as error:
            message = f"{error.message}; node {other} cannot reach it either"
            raise InfraError(
                message,
                node=name,
                hint=error.hint,
                passing=error.passing,
                failure_class=error.failure_class,
                output=error.output,
            ) from error


def _with_build(
    store: "Store",
    run_id: str,
    resolved: Resolved,
    facts: list[NodeFacts],
    requirement: Requirement | None,
    note: Callable[[str], None],
) -> tuple[Resolved, list[NodeFacts]]:
    """Choose the release to install, if any, and replace the framework in the facts."""
    build = resolved.build or builds.release_of(requirement, facts)
    if build is None:
        return resolved, facts
    before = ", ".join(f"{fact.node} has {fact.framework_version or 'none'}" for fact in facts)
    note(f"{build.name} {build.label} is installed for this run; {before}")
    if resolved.build is None:
        store.documents.put(run_id, BuildDocument(build))
    return replace(resolved, build=build), [builds.with_build(fact, build) for fact in facts]


def settle(store: "Store", run_id: str, resolved: Resolved, facts: list[NodeFacts], nodes: Nodes) -> Plan:
    """Return and store the final plan, with the nodes' CPU features and free ports.

    Raises:
        InfraError: a node is unreachable, or has no free ports.
    """
    flags = {fact.node: frozenset(fact.cpu_flags) for fact in facts if "machine" not in fact.unfinished}
    version = next((fact.framework_version for fact in facts if fact.framework_version), "")
    plan = resolved.plan(run_id, flags, framework=version)
    if plan.compat is Compat.SPEC and any(variant.world_size > 1 for variant in plan.variants):
        port = start_port(run_id, before=_older_runs(store, run_id), taken=nodes.used_ports())
        if port != start_port(run_id):
            plan = resolved.plan(run_id, flags, port=port, framework=version)
    store.plans.replace(run_id, plan)
    used = [fact for fact in facts if fact.node in plan.nodes]
    device = resolved.cluster.node(plan.nodes[0]).device
    world = max((variant.world_size for variant in plan.variants), default=1)
    containers = [resolved.cluster.node(name).container for name in plan.nodes]
    images = [container.image if container else "" for container in containers]
    frameworks = [FrameworkVersion(fact.framework, fact.framework_version) for fact in used if fact.framework]
    store.runs.update(
        run_id,
        environment=environment_class(used, device=device, world_size=world, images=images),
        framework=str(frameworks[0]) if frameworks else "",
    )
    keep_expected(store, run_id, plan, resolved.suite, resolved.policy)
    return plan


def _older_runs(store: "Store", run_id: str) -> list[str]:
    """Return the runs whose leases are older than this run's, oldest first: one order for all runs."""
    fences = {lease.run: lease.fence for lease in store.leases.all()}
    own = fences.get(run_id)
    older = [run for run, fence in fences.items() if run != run_id and (own is None or fence < own)]
    return sorted(older, key=lambda run: fences[run])
