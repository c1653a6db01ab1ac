"""`tipcflow gate`: sensitivity and false-alert rate of the change-point detector on a chain's metrics."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tipcflow.cli.output.chains import matching_chains, only_chain
from tipcflow.cli.output.output import columns, echo_lines, print_json, terminal_width
from tipcflow.cli.output.records import AsCsv, print_records, refuse_both
from tipcflow.domain import ConfigError, Run, TipcflowError
from tipcflow.domain.numbers.units import counted, percentage

if TYPE_CHECKING:
    from tipcflow.config.policy import Policy
    from tipcflow.store import Store

_MEANING = (
    "smallest change: detected within 12 runs in 95 % of cases, at least the policy's floor; "
    "false alerts: per metric and 52 runs"
)


def gate(
    of: Annotated[str, typer.Argument(help="A chain (its newest run), a run ID, or latest.", metavar="CHAIN|RUN")],
    policy: Annotated[str, typer.Option(help="Policy. Default: the run's.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: AsCsv = False,
) -> None:
    """Report noise, minimum detectable change and false-alert rate per metric."""
    from tipcflow.config.settings import settings
    from tipcflow.execute.verdict.judge import policy_of
    from tipcflow.store import Store

    refuse_both(as_json=as_json, as_csv=as_csv)
    with Store.open() as store:
        run = _run(store, of)
        rules = policy_of(store, run, policy, settings().config_dir)
        rows = limits(store, run, rules)
    if as_json:
        about = {"chain": run.chain, "mode": run.mode, "environment": run.environment, "policy": rules.name}
        print_json(about | {"metrics": rows})
        return
    if as_csv:
        print_records(rows)
        return
    typer.echo(f"{run.chain} in {run.mode} on {run.environment or 'an unknown environment'}, policy {rules.name}")
    if not rows:
        typer.echo("no accepted run has an evaluated metric")
        return
    head = ("STEP", "LEG", "METRIC", "RUNS", "NOISE", "SMALLEST CHANGE", "FALSE ALERTS A YEAR")
    echo_lines(columns(head, [_cells(row, rules) for row in rows], width=terminal_width()))
    typer.echo(_MEANING)


def limits(store: "Store", run: Run, rules: "Policy") -> list[dict[str, Any]]:
    """The detector's limits on each evaluated metric of the run's chain, mode and environment."""
    from tipcflow.check.baseline.detector_limits import gate_limits
    from tipcflow.execute.verdict.check_context import active_decisions, history_of

    starts = active_decisions(store.baselines.decisions(run.chain, run.mode, run.environment)).starts
    # The run itself is part of the history of the next run.
    after = run.model_copy(update={"id": ""})
    return gate_limits(history_of(store, after, starts, rules), rules)


def _run(store: "Store", of: str) -> Run:
    """The newest run of a chain, or the run; the name of a chain comes first."""
    chains = store.runs.chains()
    matches = matching_chains(chains, of)
    if len(matches) == 1:
        return store.runs.newest(chain=matches[0], limit=1)[0]
    try:
        return store.runs.find(of)
    except TipcflowError as error:
        if matches:
            only_chain(chains, of, key="CHAIN|RUN")
        raise ConfigError(
            "no chain or run has this name", key="CHAIN|RUN", found=of, hint="`tipcflow runs`"
        ) from error


def _cells(row: dict[str, Any], rules: "Policy") -> tuple[str, ...]:
    missing = rules.detect.min_history - row["runs"]
    unknown = f"known after {counted(missing, 'more run')}" if missing > 0 else "unknown"
    false = "-"
    if row["false_per_year"] is not None:
        least = 3 / row["simulated_years"]  # no alert in N simulated years: the rate is below 3/N (95 %)
        false = f"{row['false_per_year']:.3f}" if row["false_per_year"] else f"below {least:.2f}"
    return (
        row["step"],
        row["leg"],
        row["metric"],
        str(row["runs"]),
        "-" if row["sigma"] is None else percentage(row["sigma"], 2),
        unknown if row["smallest"] is None else percentage(row["smallest"]),
        false,
    )
