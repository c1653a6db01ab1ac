"""`tipcflow judge RUN` and `judge --since DATE`: stored runs under the current rules."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from tipcflow.cli.output.output import columns, echo_lines, print_json, terminal_width
from tipcflow.cli.output.records import print_records
from tipcflow.domain import ConfigError, Run
from tipcflow.domain.triggers import SIDE_RUNS
from tipcflow.report.rows import NOT_GATING

if TYPE_CHECKING:
    from tipcflow.domain import CheckResult
    from tipcflow.execute.verdict.rejudge import Change, Rejudged
    from tipcflow.store import Store

# Checks per run in the table; --json has all of them.
_SHOWN = 3
_EVERY = 1_000_000
# Columns of --csv. A run without a difference has one row, with an empty check.
_RUN = ("run", "chain", "policy", "stored_status", "status")
_CHECK = ("check", "step", "leg", "metric")
_COLUMNS = (*_RUN, *_CHECK, "stored", "stored_reason", "now", "now_reason")


def judge_stored(run: str, since: str, policy: str, *, as_json: bool, as_csv: bool = False) -> None:
    """Print the stored and the current verdict of one run, or of all runs since a date."""
    from tipcflow.store import Store

    with Store.open() as store:
        runs = [_ended(store.runs.find(run))] if run else _since(store, since)
        results = [_again(store, stored_run, policy) for stored_run in runs]
    if as_json:
        print_json([_json(result) for result in results])
        return
    if as_csv:
        print_records([record for result in results for record in _records(result)], names=_COLUMNS)
        return
    if not results:
        typer.echo(f"no judged run since {since}")
        return
    rows = [row for result in results for row in _rows(result)]
    echo_lines(columns(("RUN", "STORED", "NOW", "DIFFERS IN"), rows, width=terminal_width()))
    other = sum(result.status is not result.run.status for result in results)
    typer.echo(f"{len(results)} runs, {other} with another status now; nothing was changed")


def _again(store: "Store", run: Run, policy: str) -> "Rejudged":
    from tipcflow.config.run_documents import ReferencesDocument
    from tipcflow.config.settings import settings
    from tipcflow.execute.verdict.judge import load_references, policy_of
    from tipcflow.execute.verdict.rejudge import rejudge

    config_dir = settings().config_dir
    stored = store.documents.get(run.id, ReferencesDocument)
    references = stored.root if stored else load_references(run.suite, config_dir)
    return rejudge(store, run, rules=policy_of(store, run, policy, config_dir), references=references)


def _ended(run: Run) -> Run:
    if run.status is None:
        raise ConfigError(f"run {run.id} has not ended", key="RUN", expected="a run that was judged")
    return run


def _since(store: "Store", text: str) -> list[Run]:
    """The judged runs since a date, oldest first, without confirm runs and those of bisections."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        expected = "a date such as 2026-11-21 or 2026-11-21T09:30"
        raise ConfigError("is not a date", key="--since", found=text, expected=expected) from error
    begin = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    recent = [run for run in store.runs.newest(limit=_EVERY) if run.created_at >= begin and run.status is not None]
    judged = [run for run in recent if run.trigger not in SIDE_RUNS and store.checks.results(run.id)]
    return sorted(judged, key=lambda run: (run.created_at, run.id))


def _rows(result: "Rejudged") -> list[tuple[str, ...]]:
    run, changes = result.run, result.changes
    head = (run.id, str(run.status), result.status.value)
    if not changes:
        return [(*head, "-")]
    rows: list[tuple[str, ...]] = [(*head, _words(changes[0]))]
    rows += [("", "", "", _words(change)) for change in changes[1:_SHOWN]]
    if len(changes) > _SHOWN:
        rows.append(("", "", "", f"and {len(changes) - _SHOWN} more checks"))
    return rows


def _records(result: "Rejudged") -> list[dict[str, Any]]:
    head = (result.run.id, result.run.chain, result.policy, str(result.run.status), result.status.value)
    own = dict(zip(_RUN, head, strict=True))
    return [
        own
        | {name: getattr(change.about, name) for name in _CHECK}
        | {
            "stored": change.before.status.value if change.before else "",
            "stored_reason": change.before.reason if change.before else "",
            "now": change.now.status.value if change.now else "",
            "now_reason": change.now.reason if change.now else "",
        }
        for change in result.changes
    ] or [own]


def _words(change: "Change") -> str:
    about = " ".join(part for part in (change.about.step, change.about.leg) if part)
    name = f"{change.about.check} ({about})" if about else change.about.check
    return f"{name}: stored {_answer(change.before)}; now {_answer(change.now)}"


def _answer(result: "CheckResult | None") -> str:
    if result is None:
        return "no result"
    return f"{result.status.value}{'' if result.gating else f' ({NOT_GATING})'}: {result.reason}"


def _json(rejudged: "Rejudged") -> dict[str, Any]:
    def record(result: "CheckResult | None") -> dict[str, Any] | None:
        if result is None:
            return None
        return {"status": result.status.value, "gating": result.gating, "reason": result.reason}

    return {
        "run": rejudged.run.id,
        "chain": rejudged.run.chain,
        "policy": rejudged.policy,
        "stored": {"status": str(rejudged.run.status), "reason": rejudged.run.reason},
        "now": {"status": rejudged.status.value, "reason": rejudged.reason},
        "differs": [
            {name: getattr(change.about, name) for name in ("check", "step", "leg", "metric")}
            | {"stored": record(change.before), "now": record(change.now)}
            for change in rejudged.changes
        ],
    }
