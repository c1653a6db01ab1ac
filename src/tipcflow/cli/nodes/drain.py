"""`tipcflow nodes drain`: takes a node out of service, for example one that `nodes --history` proposes."""

from typing import Annotated

import typer

from tipcflow.cli.nodes.choice import ClusterOption, chosen_inventories
from tipcflow.cli.output.account import Because, Who, account_name, reason_of


def drain(
    context: typer.Context,
    node: Annotated[str, typer.Argument(help="Node of a cluster file.")],
    because: Because = "",
    cluster: ClusterOption = None,
    who: Who = "",
) -> None:
    """Take a node out of service, also with `drain: ask` in the cluster file; active runs on the node continue."""
    from tipcflow.execute.drain.manual import start_drain
    from tipcflow.execute.overview.node_history import recent_node_history
    from tipcflow.report.overview.node_history import NodeHistory
    from tipcflow.store import Store

    why = reason_of(because)
    clusters = chosen_inventories(cluster or context.obj)
    with Store.open() as store:

        def history_of(name: str) -> NodeHistory:
            return recent_node_history(store, cluster=name)

        decided = {"who": account_name(who), "why": why}
        made = start_drain(store, clusters, node, history_of=history_of, **decided)
    typer.echo(
        f"node {made.node} of cluster {made.cluster} gets no runs, unless a run needs more nodes than are left; "
        f"undo: tipcflow nodes undrain {made.node} --cluster {made.cluster} --because '…'"
    )
