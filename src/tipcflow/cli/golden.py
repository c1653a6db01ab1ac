"""`tipcflow golden …`: reviewed predictions, stored as the reference of later runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.output.account import Who, account_name
from tipcflow.cli.output.output import columns, echo_lines, print_json, terminal_width
from tipcflow.domain import ConfigError, Facts, GoldenKey, LegKey, Plan, Status
from tipcflow.domain.errors import why_unreadable

if TYPE_CHECKING:
    from tipcflow.config.goldens import GoldenPredictions, Goldens
    from tipcflow.store import Store

app = typer.Typer(no_args_is_help=True, help="Stored predictions for comparison with later runs.")


@app.callback()
def _group() -> None:
    """Stored predictions that later runs are compared with."""


@app.command("record")
def record(
    run: Annotated[str, typer.Argument(help="Run ID or a prefix of it, or latest.")],
    because: Annotated[str, typer.Option(help="Why these predictions are correct.")],
    results: Annotated[
        list[Path] | None,
        typer.Option(help="Store a suite's file of results (python_…_fp32.txt) instead; one per precision."),
    ] = None,
    who: Who = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the goldens as JSON.")] = False,
) -> None:
    """Store a run's predictions as the goldens of its chain and mode; commit the generated file."""
    from tipcflow.config.goldens import golden_path
    from tipcflow.config.settings import settings
    from tipcflow.store import Store

    with Store.open() as store:
        run_id = store.runs.find(run).id
        goldens = goldens_of(store, run_id, who=account_name(who), because=because.strip(), files=results or ())
    path = golden_path(settings().config_dir, goldens.chain, goldens.mode)
    _write(path, goldens)
    if as_json:
        print_json(goldens.model_dump(mode="json"))
        return
    typer.echo(f"{path}: goldens of {goldens.chain} in {goldens.mode}, from run {goldens.run}")
    echo_lines(_table(goldens))


@app.command("show")
def show(
    run: Annotated[str, typer.Argument(help="Run ID or a prefix of it, or latest; selects chain and mode.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the goldens of a run's chain and mode."""
    from tipcflow.config.goldens import golden_path, load_goldens
    from tipcflow.config.settings import settings
    from tipcflow.store import Store

    with Store.open() as store:
        stored_run = store.runs.find(run)
    goldens = load_goldens(settings().config_dir, stored_run.chain, stored_run.mode)
    if goldens is None:
        path = golden_path(settings().config_dir, stored_run.chain, stored_run.mode)
        raise ConfigError(
            f"no goldens are stored for {stored_run.chain} in {stored_run.mode}",
            file=str(path),
            hint=f'`tipcflow golden record {stored_run.id} --because "…"`',
        )
    if as_json:
        print_json(goldens.model_dump(mode="json"))
        return
    typer.echo(
        f"{goldens.chain} in {goldens.mode}, from run {goldens.run} ({goldens.framework or 'framework unknown'})"
    )
    typer.echo(f"recorded by {goldens.who} at {goldens.at}: {goldens.because}")
    echo_lines(_table(goldens))


def goldens_of(store: "Store", run_id: str, *, who: str, because: str, files: Sequence[Path] = ()) -> "Goldens":
    """The goldens of a run: for each inference step and precision, the passed leg with the fewest optimizations.

    Args:
        files: a suite's files of results to read predictions from instead; the run may then have any status.

    Raises:
        ConfigError: the run did not pass or printed no predictions, the reason is empty, or a file is wrong.
    """
    from datetime import UTC, datetime

    from tipcflow.config.goldens import Goldens

    run, facts = store.runs.get(run_id), store.history.facts(run_id)
    if not because:
        raise ConfigError("a golden needs a reason", key="--because", expected="why these predictions are correct")
    if run.status not in (Status.PASS, Status.IMPROVEMENT) and not files:
        state = f"is {run.status.value}" if run.status else "is running"
        raise ConfigError(f"run {run.id} {state}", expected="a run with status pass or improvement")
    predictions = _of_files(files, facts.plan) if files else _of_legs(facts)
    if not predictions:
        raise ConfigError(f"run {run.id} printed no predictions", expected='lines `image<TAB>{"scores": […]}`')
    return Goldens(
        chain=run.chain,
        mode=run.mode,
        compat=run.compat,
        seed=run.seed,
        run=run.id,
        framework=run.framework,
        suite_commit=run.suite_commit,
        who=who,
        because=because,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        predictions=predictions,
    )


def _of_legs(facts: Facts) -> "dict[GoldenKey, GoldenPredictions]":
    from tipcflow.config.goldens import GoldenPredictions

    predictions: dict[GoldenKey, GoldenPredictions] = {}
    for step in facts.plan.steps:
        # Legs without oneDNN and TensorRT first: goldens exist to detect how these change scores.
        for leg in sorted(
            step.legs, key=lambda candidate: (bool(candidate.onednn), bool(candidate.tensorrt), candidate.id)
        ):
            key, own = GoldenKey(step.id, leg.precision), LegKey(step.id, leg.id)
            scores = facts.predictions.get(own)
            if scores and key not in predictions and facts.leg_status.get(own) is Status.PASS:
                predictions[key] = GoldenPredictions(leg=leg.id, scores=scores)
    return predictions


def _of_files(files: Sequence[Path], plan: Plan) -> "dict[GoldenKey, GoldenPredictions]":
    """The results of each file for all inference steps with legs of its precision, also if these did not run."""
    from tipcflow.config.goldens import GoldenPredictions
    from tipcflow.parse import RESULT_PRECISIONS, parse_stored_results, precision_of_results

    steps: dict[str, dict[str, None]] = {}
    for step in plan.steps:
        for leg in step.legs:
            steps.setdefault(leg.precision, {})[step.id] = None
    predictions: dict[GoldenKey, GoldenPredictions] = {}
    for path in files:
        precision = precision_of_results(path.name)
        if not precision:
            expected = f"{', '.join(RESULT_PRECISIONS)} in the file's name"
            raise ConfigError("names no precision", file=str(path), found=path.name, expected=expected)
        if precision not in steps:
            expected = f"a precision of the run's legs: {', '.join(sorted(filter(None, steps))) or 'none'}"
            raise ConfigError("no leg has this precision", file=str(path), found=precision, expected=expected)
        keys = [GoldenKey(step, precision) for step in steps[precision]]
        if keys[0] in predictions:
            raise ConfigError("a second file of this precision", file=str(path), found=precision)
        try:
            scores = parse_stored_results(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot be read: {why_unreadable(error)}", file=str(path)) from error
        if not any(scores.values()):
            raise ConfigError("has no result", file=str(path), expected="lines `image<TAB>[[…]]`")
        predictions |= dict.fromkeys(keys, GoldenPredictions(file=path.name, scores=scores))
    return predictions


def _write(path: Path, goldens: "Goldens") -> None:
    """Write atomically: a truncated golden file would fail every later run."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(goldens.model_dump_json(indent=1) + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error}", file=str(path)) from error


def _table(goldens: "Goldens") -> list[str]:
    rows = []
    for key, predictions in goldens.predictions.items():
        rows.append((key.step, key.precision, str(len(predictions.scores)), predictions.origin))
    return columns(("STEP", "PRECISION", "IMAGES", "FROM"), rows, width=terminal_width())
