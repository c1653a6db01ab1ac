"""A plan as text: steps, nodes, predicted durations, and differences from the suite's script."""

from collections.abc import Sequence

import typer

from tipcflow.cli.output.output import columns, echo_lines, terminal_width
from tipcflow.cli.plan.durations import Prediction
from tipcflow.domain import Plan, Variant
from tipcflow.domain.numbers.units import counted, minutes
from tipcflow.plan import PlanRow, plan_rows


def print_table(made: Plan, prediction: Prediction) -> None:
    """Variants, steps with nodes, processes, legs and predicted minutes, replacements and quirks."""
    typer.echo(f"{typer.style(made.chain, bold=True)}  {made.mode}  compat {made.compat.value}")
    typer.echo(f"params {made.params_file}  sha256 {made.params_sha256[:12]}  dialect {made.dialect}")
    for variant in made.variants:
        typer.echo(f"variant {_variant(variant)}")
    known = bool(prediction.seconds)
    headers = ("STEP", "NODES", "PROCESSES", *(["MINUTES"] if known else []), "LEGS")
    rows = [_cells(row, prediction) for row in plan_rows(made)]
    typer.echo()
    echo_lines(columns(headers, rows, width=terminal_width()))
    if known:
        typer.echo(_total(made, prediction))
    _print_lists(made)


def _variant(variant: Variant) -> str:
    parts = [variant.id, f"trainer {variant.trainer}"]
    if variant.precision:
        parts.append(f"precision {variant.precision}")
    parts.append(f"devices {','.join(variant.devices)}" if variant.devices else "on CPU")
    nodes = "node" if variant.node_count == 1 else "nodes"
    ranks = "process" if variant.world_size == 1 else "processes"
    return ", ".join([*parts, f"{variant.node_count} {nodes}, {variant.world_size} {ranks} in total"])


def _cells(row: PlanRow, prediction: Prediction) -> Sequence[str]:
    notes = [f"{row.legs} run"] if row.legs else []
    notes += [f"{count} not run: {why}" for why, count in row.not_run.items()]
    seconds = prediction.seconds.get(row.step)
    predicted = [] if not prediction.seconds else ["" if seconds is None else minutes(seconds)]
    return [row.step, " ".join(row.nodes), str(row.processes or ""), *predicted, "; ".join(notes)]


def _total(made: Plan, prediction: Prediction) -> str:
    unknown = sum(1 for step in made.steps if step.id not in prediction.seconds and not step.not_run)
    lacking = f"; {unknown} of {len(made.steps)} steps have no history" if unknown else ""
    runs = counted(prediction.runs, "past run")
    return f"predicted {minutes(prediction.total)} minutes, the median of {runs}{lacking}"


def _print_lists(made: Plan) -> None:
    for title, lines in (
        ("replaced", [f"{s.what}: {s.found} -> {s.used} ({s.because})" for s in made.substitutions]),
        ("differs from the suite's script", [f"{q.id}: {q.spec} (script: {q.bash})" for q in made.quirks]),
    ):
        if lines:
            typer.echo("\n" + typer.style(title, bold=True))
            for line in lines:
                typer.echo(f"  {line}")


def print_commands(made: Plan) -> None:
    """Every command, with its node, folder and environment."""
    for step in made.steps:
        typer.echo(f"\n# {step.id}" + (f"  (not run: {step.not_run})" if step.not_run else ""))
        for node, command in step.commands.items():
            settings = "".join(f"{key}={value} " for key, value in command.env.items() if value)
            place = "" if command.cwd in ("", ".") else f"cd {command.cwd} && "
            typer.echo(f"[{node}] {place}{settings}{command.shell}")
        for leg in step.legs:
            mark = f"  # not run: {leg.not_run}" if leg.not_run else ""
            typer.echo(f"[{step.nodes[0] if step.nodes else ''}] {leg.command.shell}{mark}")
