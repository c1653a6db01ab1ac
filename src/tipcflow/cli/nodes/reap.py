"""`tipcflow nodes reap`: ends processes that dead controllers left on nodes, and frees their slots."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.nodes.choice import ClusterOption, chosen
from tipcflow.domain import Cluster, ConfigError, InfraError, Node, Status, StoppedBy, exit_code

if TYPE_CHECKING:
    from tipcflow.execute.sweeps.reap import Reaped
    from tipcflow.store import Store

AT_ONCE = 16


def reap(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(metavar="NODE", help="Only these nodes.")] = None,
    cluster: ClusterOption = None,
    run: Annotated[str, typer.Option("--run", help="Only this run, whether or not the database knows it.")] = "",
    gone: Annotated[
        str,
        typer.Option(
            "--gone",
            metavar="ADDRESS",
            help="Only remove expired leases of this node, which is in no cluster file any more.",
        ),
    ] = "",
) -> None:
    """End leftovers of runs without a valid lease, free their slots, and fetch the logs of nodes that were lost.

    Runs of this machine whose controller was killed are collected and get a status. Other runs with a valid lease
    are left alone. Exit code 5 if a node, or Slurm, is unreachable.
    """
    from tipcflow.config.settings import settings
    from tipcflow.execute.run import status_spool as spool
    from tipcflow.execute.sweeps.late_logs import late_logs
    from tipcflow.execute.sweeps.maintenance import Upkeep
    from tipcflow.execute.sweeps.reap import Reaper
    from tipcflow.execute.sweeps.runs import collect_left
    from tipcflow.store import Store
    from tipcflow.transport.connect import connect

    if gone:
        _reap_gone(gone, run, others=bool(names or cluster or context.obj))
        return
    clusters = chosen(cluster or context.obj)
    nodes = chosen_nodes([known for known in clusters if known.slurm is None], names or [])
    addresses = {node.address for node in nodes}
    with Store.open() as store, ThreadPoolExecutor(AT_ONCE) as pool:
        now = store.now()
        killed: list[str] = []
        late: list[str] = []
        upkeep = Upkeep(store, settings().home, settings().config_dir, connect, late.append, now=now)
        spool.apply(upkeep.home, store)
        collect_left(replace(upkeep, report=killed.append), addresses=addresses, run=run)
        reaper = Reaper(store, connect, now=now, run=run, by=StoppedBy.OPERATOR)
        reaped = list(pool.map(reaper.reap, nodes))
        forgotten = store.queue.drop_dead(now)
        late_logs(upkeep, addresses=addresses, run=run)
        slurm, silent = allocation_lines(store, [known for known in clusters if known.slurm is not None], run)
    lines = (
        *(f"run {line}" for line in killed),
        *reap_lines(reaped, forgotten),
        *slurm,
        *(f"logs: {line}" for line in late),
    )
    for line in lines:
        typer.echo(line)
    is_unreachable = bool(silent) or any(result.unreachable for result in reaped)
    raise typer.Exit(exit_code(Status.INFRA_FAILURE) if is_unreachable else 0)


def _reap_gone(address: str, run: str, *, others: bool) -> None:
    """Remove expired leases of a node that does not return, and print them."""
    from tipcflow.cli.nodes.gone import drop_gone, refuse_configured
    from tipcflow.store import Store

    if others:
        raise ConfigError(
            "cannot be combined",
            key="--gone",
            found=address,
            expected="no NODE and no --cluster; --run is allowed",
        )
    refuse_configured(address)
    with Store.open() as store:
        lines = drop_gone(store, address, run=run, now=store.now())
    for line in lines:
        typer.echo(f"{address}: {line}")


def allocation_lines(store: "Store", clusters: Iterable[Cluster], run: str) -> tuple[list[str], list[str]]:
    """End the allocations of ended runs on Slurm clusters; return a line about each, and unreachable clusters."""
    from tipcflow.execute.allocation.leftovers import end_leftovers
    from tipcflow.transport.connect import connect

    lines, silent = [], []
    for cluster in clusters:
        try:
            ended = end_leftovers(store, cluster, connect, run=run)
        except InfraError as error:
            ended = [f"unreachable: {error.message}"]
            silent.append(cluster.name)
        lines += [f"{cluster.name}: {line}" for line in ended or ["no allocation to end"]]
    return lines, silent


def chosen_nodes(clusters: Iterable[Cluster], names: Sequence[str]) -> list[Node]:
    """The nodes of these names, each host once; all nodes if no name is given.

    Raises:
        ConfigError: no cluster has a node of that name.
    """
    nodes = list({node.address: node for cluster in clusters for node in cluster.nodes}.values())
    known = {node.name for node in nodes}
    for name in names:
        if name not in known:
            raise ConfigError(
                "no such node", key="NODE", found=name, expected=f"one of {', '.join(sorted(known))}"
            )
    return [node for node in nodes if not names or node.name in names]


def reap_lines(reaped: "Iterable[Reaped]", forgotten: Sequence[str]) -> list[str]:
    """The actions, one block per node."""
    lines = []
    for result in reaped:
        actions = [*result.lines, *([f"unreachable: {result.unreachable}"] if result.unreachable else [])]
        lines += [f"{result.node}: {line}" for line in actions or ["nothing to do"]]
    lines += [f"queue: run {run} removed: its controller does not run any more" for run in forgotten]
    return lines
