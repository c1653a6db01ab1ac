"""`tipcflow nodes undrain`: returns a drained node to service."""

from typing import Annotated

import typer

from tipcflow.cli.nodes.choice import ClusterOption
from tipcflow.cli.output.account import account_name
from tipcflow.domain import ConfigError


def undrain(
    context: typer.Context,
    node: Annotated[str, typer.Argument(help="Drained node.")],
    because: Annotated[str, typer.Option(help="Reason.")] = "",
    cluster: ClusterOption = None,
    who: Annotated[str, typer.Option(help="Author. Default: the current user.")] = "",
) -> None:
    """Let runs use a drained node again; its present slowdown does not drain it again."""
    from tipcflow.execute.drain.drains import end_drain
    from tipcflow.store import Store

    if not because.strip():
        raise ConfigError("is empty", key="--because", expected="a reason")
    with Store.open() as store:
        named = cluster or context.obj or ""
        ended = end_drain(store, named, node, who=account_name(who), why=because.strip())
    typer.echo(f"node {ended.node} of cluster {ended.cluster} gets runs again")
