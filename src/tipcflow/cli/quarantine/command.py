"""`tipcflow quarantine …`: failures that do not block for a limited time."""

from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.output.account import Because, Who, account_name, reason_of
from tipcflow.cli.output.output import echo_lines, print_json, terminal_width
from tipcflow.cli.output.records import AsCsv, print_records, refuse_both
from tipcflow.domain import ConfigError

if TYPE_CHECKING:
    from tipcflow.domain.quarantine.entry import Quarantine
    from tipcflow.store import Store

app = typer.Typer(no_args_is_help=True, help="Quarantines keep known failures from blocking, for a limited time.")

Number = Annotated[int, typer.Argument(help="Number of the quarantine.", min=1)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback()
def _group() -> None:
    """Failures of a chain's checks that do not block for a limited time; the chain still runs and is measured."""


@app.command("add")
def add(
    chain: Annotated[str, typer.Argument(help="Chain: its name or a part of it.")],
    check: Annotated[str, typer.Argument(help="Check, as `tipcflow show RUN` prints it.")],
    owner: Annotated[str, typer.Option(help="User or team that fixes the failure.")],
    because: Because,
    until: Annotated[
        str, typer.Option(help="End (UTC), e.g. 2026-12-01. Default: half of the policy's maximum.")
    ] = "",
    run: Annotated[str, typer.Option(help="Run with the failure. Default: the chain's newest.")] = "",
    step: Annotated[str, typer.Option(help="Only the failure of this step.")] = "",
    leg: Annotated[str, typer.Option(help="Only the failure of this leg.")] = "",
    metric: Annotated[str, typer.Option(help="Only the failure of this metric.")] = "",
    who: Who = "",
    as_json: AsJson = False,
) -> None:
    """Quarantine a failure of a chain: later failures with its signature do not block.

    The limits are those of the run's policy (quarantine.per_day, quarantine.max_days).
    """
    from tipcflow.cli.output.chains import find_chain
    from tipcflow.config.settings import settings
    from tipcflow.execute.decide.quarantines import end_of
    from tipcflow.execute.quarantine.add import Request, find_failure, quarantine_failure
    from tipcflow.execute.verdict.judge import policy_of
    from tipcflow.store import Store

    for key, text in (("--because", because), ("--owner", owner)):
        if not text.strip():
            raise ConfigError("is empty", key=key, expected="a reason" if key == "--because" else "a user or team")
    request = Request(
        check=check,
        owner=owner.strip(),
        who=account_name(who),
        why=because.strip(),
        step=step,
        leg=leg,
        metric=metric,
        expires_at=end_of(until),
    )
    with Store.open() as store:
        failed = find_failure(store, find_chain(store, chain), check, run)
        rules = policy_of(store, failed, "", settings().config_dir)
        made = quarantine_failure(store, failed, request, rules.quarantine)
    if as_json:
        print_json(_document(made, made.created_at))
        return
    typer.echo(f"{made.label}: {made.about} of {made.chain} in {made.mode}")
    ends = f"{made.clean_runs} consecutive clean runs on newer commits end it"
    typer.echo(f"failed in {made.failed} of {made.judged} runs; {ends}")


@app.command("list")
def show_list(
    chain: Annotated[str, typer.Option(help="Only quarantines of this chain.")] = "",
    ended: Annotated[bool, typer.Option("--all", help="Also list ended quarantines.")] = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """List quarantines, newest first, and release those that have their clean runs."""
    from tipcflow.cli.output.chains import find_chain
    from tipcflow.cli.quarantine.text import list_lines
    from tipcflow.execute.quarantine.release import release_all_clean
    from tipcflow.store import Store

    refuse_both(as_json=as_json, as_csv=as_csv)
    with Store.open() as store:
        release_all_clean(store)
        now = store.now()
        known = store.quarantines.all(chain=find_chain(store, chain, key="--chain") if chain else "")
        shown = [quarantine for quarantine in known if ended or quarantine.is_active(now)]
        progress = [_progress(store, quarantine) for quarantine in shown]
    documents = [_document(each, now, clean) for each, (clean, _) in zip(shown, progress, strict=True)]
    if as_csv:
        print_records(documents)
        return
    if as_json:
        print_json({"schema_version": 1, "quarantines": documents})
        return
    if not shown:
        typer.echo("no quarantines" if ended else "no active quarantines")
        return
    echo_lines(list_lines(shown, [clean for clean, _ in progress], now, width=terminal_width()))


@app.command("show")
def show(number: Number, as_json: AsJson = False) -> None:
    """Show a quarantine: scope, signature, evidence, who made and released it, clean runs so far."""
    from tipcflow.cli.quarantine.text import quarantine_lines
    from tipcflow.store import Store

    with Store.open() as store:
        quarantine = store.quarantines.get(number)
        now = store.now()
        clean, failed = _progress(store, quarantine)
    if as_json:
        print_json(_document(quarantine, now, clean) | {"failed_since": failed})
        return
    echo_lines(quarantine_lines(quarantine, clean, failed, now))


@app.command("release")
def release(
    number: Number,
    because: Because,
    who: Who = "",
    as_json: AsJson = False,
) -> None:
    """End a quarantine: from the next verdict on, the failure blocks."""
    from tipcflow.execute.decide.quarantines import release_quarantine
    from tipcflow.store import Store

    why = reason_of(because)
    with Store.open() as store:
        ended = release_quarantine(store, number, who=account_name(who), why=why)
        now = store.now()
    if as_json:
        print_json(_document(ended, now))
        return
    typer.echo(f"released: quarantine {number}, {ended.about} of {ended.chain} in {ended.mode}")


def _progress(store: "Store", quarantine: "Quarantine") -> tuple[int, list[str]]:
    """Clean runs up to now, and runs that failed since the quarantine."""
    from tipcflow.execute.quarantine.release import progress_of

    progress = progress_of(store, quarantine)
    return progress.clean, list(progress.failed)


def _document(quarantine: "Quarantine", now: float, clean: int = 0) -> dict[str, object]:
    from tipcflow.report.overview.decisions import state_of

    more = {"state": state_of(quarantine, now), "clean_runs": clean, "clean_runs_needed": quarantine.clean_runs}
    return {**quarantine.model_dump(mode="json"), **more}
