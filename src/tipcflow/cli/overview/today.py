"""`tipcflow today`: the state of all chains."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.output.output import columns, echo_lines, terminal_width
from tipcflow.cli.output.records import refuse_both
from tipcflow.cli.overview.printing import AsCsv, AsJson, note_generated, print_for_programs
from tipcflow.domain.numbers.units import duration, utc, utc_minute

if TYPE_CHECKING:
    from tipcflow.report.overview.today import Problem, Running, Today


def today(
    suite: Annotated[str, typer.Option(help="Only chains of this suite.")] = "",
    chain: Annotated[str, typer.Option(help="Only chains whose name contains this text.")] = "",
    mode: Annotated[str, typer.Option(help="Only runs in this mode.")] = "",
    cluster: Annotated[str, typer.Option(help="Only runs on this cluster.")] = "",
    build: Annotated[
        str, typer.Option(help="Only runs with this framework build, e.g. 'paddlepaddle 3.3.1'.")
    ] = "",
    days: Annotated[
        float, typer.Option(min=0, help="Count chains with a run in the last N days; others are listed as stale.")
    ] = 14,
    new_days: Annotated[
        float, typer.Option("--new-days", min=0, help="A problem is new if it began in the last N days.")
    ] = 7,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show how many chains pass on each framework build, new problems with suspects, and what is running."""
    from tipcflow.config.settings import settings
    from tipcflow.execute.overview.today import Scope, load_today
    from tipcflow.execute.run import status_spool as spool
    from tipcflow.store import Store

    refuse_both(as_json=as_json, as_csv=as_csv)
    scope = Scope(suite=suite, chain=chain, mode=mode, cluster=cluster, build=build)
    with Store.open() as store:
        spool.apply(settings().home, store)
        overview = load_today(store, scope, days=days, new_days=new_days)
        note_generated(store.recorded.has_generated())
        url = store.url
    if print_for_programs(overview, as_json=as_json, as_csv=as_csv):
        return
    if not (overview.builds or overview.stale or overview.running):
        wanted = any(vars(scope).values())
        typer.echo("no matching chains" if wanted else f"no runs in {url}: see `tipcflow run --help`", err=True)
        return
    echo_lines(today_lines(overview, width=terminal_width()))


def today_lines(overview: "Today", *, width: int | None) -> list[str]:
    """The overview as text: a sentence per build, then tables, the most urgent first."""
    lines = [build.sentence for build in overview.builds] or [f"no chain ran in the last {overview.days:g} days"]
    lines += [f"{len(suspect.chains)} chains share the change {suspect.change}" for suspect in overview.shared]
    lines += _section(f"new in the last {overview.new_days:g} days", overview.new, width)
    lines += _section("known", overview.known, width)
    if overview.quarantined:
        lines += ["", f"quarantined ({len(overview.quarantined)}): `tipcflow quarantine list`"]
        covered = [(state.run, f"{state.chain} on {state.cluster}") for state in overview.quarantined]
        lines += columns(("RUN", "CHAIN"), covered, width=width, cut=True)
    if overview.running:
        lines += ["", f"running ({overview.running_total})"]
        head = ("RUN", "STATE", "FOR", "EXPECTED END", "CHAIN")
        lines += columns(head, [_running(overview, run) for run in overview.running], width=width, cut=True)
    if overview.stale:
        lines += ["", f"not run in the last {overview.days:g} days ({len(overview.stale)})"]
        rows = [(utc(state.started_at)[:10], state.status.value, state.chain) for state in overview.stale]
        lines += columns(("LAST RUN", "STATUS", "CHAIN"), rows, width=width, cut=True)
    return lines


def _section(title: str, problems: Sequence["Problem"], width: int | None) -> list[str]:
    if not problems:
        return ["", f"{title}: none"]
    rows = []
    for problem in problems:
        reason = problem.reason.splitlines()[0] if problem.reason else ""
        suspects = f" [since {', '.join(problem.suspects)}]" if problem.suspects else ""
        since = utc(problem.first_bad_at)[:10]
        rows.append((problem.status.value, since, f"{problem.chain} on {problem.cluster}", f"{reason}{suspects}"))
    return ["", f"{title} ({len(problems)})", *columns(("STATUS", "SINCE", "CHAIN", "WHY"), rows, width=width)]


def _running(overview: "Today", run: "Running") -> tuple[str, ...]:
    state = "waiting" if run.waits else "running" if run.started_at is not None else "starting"
    spent = duration(overview.at - (run.started_at or run.created_at))
    end = "" if run.expected_end_at is None else utc_minute(run.expected_end_at)
    return run.run, state, spent, end, run.chain
