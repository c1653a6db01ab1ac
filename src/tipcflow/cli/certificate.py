"""`tipcflow certificate …`: the JSON that links a run's configuration to its verdict."""

from typing import Annotated

import typer

from tipcflow.domain import ConfigError

app = typer.Typer(no_args_is_help=True, help="The certificate of a run.")


@app.callback()
def _group() -> None:
    """The certificate of a run."""


@app.command("show")
def show(
    run: Annotated[str, typer.Argument(help="Run id, its first characters, or latest.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, as without this.")] = False,
) -> None:
    """Print a run's certificate: JSON, as in the file that the run wrote."""
    from tipcflow.report.certificate import as_text
    from tipcflow.store import Store

    with Store.open() as store:
        found = store.find_run(run)
        document = store.document(found.id, "certificate")
    if document is None:
        raise ConfigError(
            f"run {found.id} has no certificate",
            hint="it goes on" if found.status is None else f"it ended as {found.status.value}: {found.reason}",
        )
    typer.echo(as_text(document), nl=False)
