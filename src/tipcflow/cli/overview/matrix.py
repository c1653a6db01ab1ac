"""`tipcflow matrix`: models in rows; framework builds, environment classes, modes or variants in columns."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tipcflow.cli.output.output import echo_lines
from tipcflow.cli.output.records import refuse_both
from tipcflow.cli.overview.printing import AsCsv, AsJson, note_generated, print_for_programs
from tipcflow.domain import Status

if TYPE_CHECKING:
    from tipcflow.report.overview.matrix import Matrix

# One ASCII character per status: a terminal may have no others, and a column must not break.
_LETTERS = {
    Status.PASS: ".",
    Status.IMPROVEMENT: "+",
    Status.NOT_RUN: "-",
    Status.BLOCKED: "B",
    Status.CANCELLED: "N",
    Status.INFRA_FAILURE: "!",
    Status.UNCONFIRMED: "?",
    Status.REGRESSION: "R",
    Status.FAILED: "F",
    Status.CONFIG_ERROR: "C",
}


def matrix(
    by: Annotated[
        Literal["build", "environment", "mode", "variant"], typer.Option(help="Dimension of the columns.")
    ] = "build",
    columns: Annotated[int, typer.Option(min=1, max=30, help="Number of columns.")] = 12,
    suite: Annotated[str, typer.Option(help="Only chains of this suite.")] = "",
    chain: Annotated[str, typer.Option(help="Only chains whose name contains this text.")] = "",
    problems: Annotated[bool, typer.Option("--problems", help="Only models that do not pass.")] = False,
    limit: Annotated[int, typer.Option(min=0, help="Number of models; 0 for all.")] = 0,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show the state of each model per framework build, environment, mode or variant, the worst model first."""
    from tipcflow.execute.overview.matrix import Grid, load_matrix
    from tipcflow.store import Store

    refuse_both(as_json=as_json, as_csv=as_csv)
    grid = Grid(by=by, columns=columns, suite=suite, chain=chain, problems=problems)
    with Store.open() as store:
        overview = load_matrix(store, grid, limit=limit or None)
        note_generated(store.recorded.has_generated())
    for sentence in overview.unnamed:
        typer.echo(sentence, err=True)
    if not print_for_programs(overview, as_json=as_json, as_csv=as_csv):
        echo_lines(matrix_lines(overview))


def matrix_lines(overview: "Matrix") -> list[str]:
    """The matrix as text: a letter per cell, then what the columns and the letters mean."""
    if not overview.rows:
        return ["no matching models"]
    size = max(len(row.name) for row in overview.rows)
    names = [chr(ord("a") + place) if place < 26 else chr(ord("A") + place - 26) for place in range(30)]
    head = " ".join(names[: len(overview.columns)])
    lines = [
        f"{overview.passing} of {overview.models} models pass",
        "",
        f"{'MODEL':<{size}}  {head}",
    ]
    seen = set()
    for row in overview.rows:
        cells = [row.cells.get(column) for column in overview.columns]
        seen |= {cell.status for cell in cells if cell}
        letters = " ".join(_LETTERS.get(cell.status, "-") if cell else " " for cell in cells)
        lines.append(f"{row.name:<{size}}  {letters}".rstrip())
    known = sorted(seen, key=lambda status: status.severity)
    lines += ["", *(f"{name}  {column}" for name, column in zip(names, overview.columns, strict=False))]
    return [*lines, "", ", ".join(f"{_LETTERS.get(status, '-')} {status.value}" for status in known)]
