"""`tipcflow doctor`: what is missing for scheduler and nodes, and how to mend it."""

from typing import Annotated

import typer


def doctor(
    cluster: Annotated[str, typer.Option("--cluster", "-c", help="Also look at these nodes.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what is missing on this machine (and on a cluster's nodes), and how to mend it; exit code 2 if so."""
