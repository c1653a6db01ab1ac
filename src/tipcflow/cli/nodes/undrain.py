"""`tipcflow nodes undrain`: returns a drained node to service."""

from typing import Annotated

import typer

from tipcflow.cli.nodes.choice import ClusterOption
from tipcflow.cli.output.account import Because, Who, account_name, reason_of


def undrain(
    context: typer.Context,
    node: Annotated[str, typer.Argument(help="Drained node.")],
    because: Because = "",
    cluster: ClusterOption = None,
    who: Who = "",
) -> None:
    """Let runs use a drained node again; its present slowdown does not drain it again."""
    from tipcflow.execute.drain.drains import end_drain
    from tipcflow.store import Store

    why = reason_of(because)
    with Store.open() as store:
        named = cluster or context.obj or ""
        ended = end_drain(store, named, node, who=account_name(who), why=why)
    typer.echo(f"node {ended.node} of cluster {ended.cluster} gets runs again")
