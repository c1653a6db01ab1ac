"""`tipcflow nodes`: health, slots, leases, queue, history; adds, drains and cleans nodes."""

from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.nodes import add as nodes_add
from tipcflow.cli.nodes import drain as nodes_drain
from tipcflow.cli.nodes import reap as nodes_reap
from tipcflow.cli.nodes import undrain as nodes_undrain
from tipcflow.cli.nodes.choice import ClusterOption, chosen, chosen_inventories
from tipcflow.cli.output.output import print_json, terminal_width
from tipcflow.cli.output.records import AsCsv, print_records, refuse_both
from tipcflow.domain import Cluster, Status, exit_code

if TYPE_CHECKING:
    from tipcflow.cli.nodes.table import View

app = typer.Typer(help="Nodes: health, leases, queue.", invoke_without_command=True)
app.command("add")(nodes_add.add)
app.command("drain")(nodes_drain.drain)
app.command("reap")(nodes_reap.reap)
app.command("undrain")(nodes_undrain.undrain)


@app.callback()
def nodes(
    context: typer.Context,
    cluster: ClusterOption = None,
    history: Annotated[
        bool, typer.Option("--history", help="Show which node is slower than before; connects to no node.")
    ] = False,
    days: Annotated[float, typer.Option(min=1, help="Runs of the last N days, for --history.")] = 90,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: AsCsv = False,
) -> None:
    """Show the health and leases of nodes, and the queue; exit code 5 if a node is unhealthy."""
    context.obj = cluster
    if context.invoked_subcommand:
        return
    refuse_both(as_json=as_json, as_csv=as_csv)
    if history:
        _print_history(cluster, days, as_json=as_json, as_csv=as_csv)
        return
    from tipcflow.cli.nodes.table import as_dict, lines_of

    view = cluster_view(chosen_inventories(cluster), alone=cluster is not None)
    if as_json:
        print_json(as_dict(view))
    elif as_csv:
        print_records(as_dict(view)["nodes"])
    else:
        for line in lines_of(view, width=terminal_width()):
            typer.secho(line.text, fg=line.color, dim=line.dim, bold=line.bold)
    unhealthy = any(view.troubles_of(health) for health in view.checked)
    raise typer.Exit(exit_code(Status.INFRA_FAILURE) if unhealthy else 0)


def _print_history(cluster: str | None, days: float, *, as_json: bool, as_csv: bool) -> None:
    from tipcflow.cli.nodes.history import print_history
    from tipcflow.execute.drain.drains import all_drains
    from tipcflow.execute.overview.node_history import load_node_history
    from tipcflow.store import Store

    named = chosen(cluster)[0].name if cluster else ""
    with Store.open() as store:
        loaded = load_node_history(store, cluster=named, days=days)
        drains = [each.drain for each in all_drains(store) if named in ("", each.drain.cluster)]
    print_history(loaded, drains, as_json=as_json, as_csv=as_csv)


def cluster_view(clusters: list[Cluster], *, alone: bool) -> "View":
    """Inspect the nodes of clusters, the leases and the queue.

    Args:
        alone: these clusters only; otherwise include leases on nodes of no cluster.
    """
    from tipcflow.cli.nodes.table import View
    from tipcflow.execute.drain.drains import drained_nodes
    from tipcflow.execute.leases.messages import runs_in_the_way
    from tipcflow.execute.node.health import check_health
    from tipcflow.store import Store

    nodes = {node.address: node for cluster in clusters for node in cluster.nodes}
    checked = check_health(list(nodes.values()))
    with Store.open() as store:
        now = store.now()
        leases, queue = store.leases.all(), store.queue.places(now)
        if alone:
            leases = [lease for lease in leases if lease.node in nodes]
            queue = [place for place in queue if any(node in nodes for node, _ in place.request.slots)]
        ids = {lease.run for lease in leases} | {place.request.run for place in queue}
        ids |= {run for place in queue for run in runs_in_the_way(place)}
        runs = store.runs.known(
            sorted(ids | {run for health in checked for run in (*health.runs, *health.claims)})
        )
        drains = {drain.key: drain for cluster in clusters for drain in drained_nodes(store, cluster).values()}
    return View(
        clusters=tuple(clusters),
        checked=checked,
        leases=leases,
        queue=queue,
        runs=runs,
        drains=drains,
        now=now,
    )
