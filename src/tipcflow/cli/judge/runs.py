"""`tipcflow judge RUN` and `judge --since DATE`: stored runs under the current rules."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from tipcflow.cli.output.output import columns, echo_lines, print_json, terminal_width
from tipcflow.domain import ConfigError, Run

if TYPE_CHECKING:
    from tipcflow.domain import CheckResult
    from tipcflow.execute.verdict.rejudge import Change, Rejudged
    from tipcflow.store import Store

# Checks per run in the table; --json has all of them.
_SHOWN = 3
_EVERY = 1_000_000


def judge_stored(run: str, since: str, policy: str, *, as_json: bool) -> None:
    """Print the stored and the current verdict of one run, or of all runs since a date."""
    from tipcflow.store import Store

    with Store.open() as store:
        runs = [_ended(store.find_run(run))] if run else _since(store, since)
        found = [_again(store, one, policy) for one in runs]
    if as_json:
        print_json([_json(one) for one in found])
        return
    if not found:
        typer.echo(f"no judged run since {since}")
        return
    rows = [row for one in found for row in _rows(one)]
    echo_lines(columns(("RUN", "STORED", "NOW", "DIFFERS IN"), rows, width=terminal_width()))
    other = sum(one.status is not one.run.status for one in found)
    typer.echo(f"{len(found)} runs, {other} with another status now; nothing was changed")


def _again(store: "Store", run: Run, policy: str) -> "Rejudged":
    from tipcflow.config.references import References
    from tipcflow.config.settings import settings
    from tipcflow.execute.verdict.judge import load_references, policy_of
    from tipcflow.execute.verdict.rejudge import rejudge

    config_dir = settings().config_dir
    kept = store.document(run.id, "references")
    references = References.model_validate(kept) if kept else load_references(run.suite, config_dir)
    return rejudge(store, run, rules=policy_of(store, run, policy, config_dir), references=references)


def _ended(run: Run) -> Run:
    if run.status is None:
        raise ConfigError(f"run {run.id} has not ended", key="RUN", expected="a run that was judged")
    return run


def _since(store: "Store", text: str) -> list[Run]:
    """The judged runs since a date, oldest first, without confirmation runs."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        expected = "a date such as 2026-11-21 or 2026-11-21T09:30"
        raise ConfigError("is not a date", key="--since", found=text, expected=expected) from error
    begin = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    known = [one for one in store.runs(limit=_EVERY) if one.created_at >= begin and one.status is not None]
    judged = [one for one in known if one.trigger != "confirm" and store.check_results(one.id)]
    return sorted(judged, key=lambda one: (one.created_at, one.id))


def _rows(found: "Rejudged") -> list[tuple[str, ...]]:
    run, changes = found.run, found.changes
    head = (run.id, str(run.status), found.status.value)
    if not changes:
        return [(*head, "-")]
    rows: list[tuple[str, ...]] = [(*head, _words(changes[0]))]
    rows += [("", "", "", _words(one)) for one in changes[1:_SHOWN]]
    if len(changes) > _SHOWN:
        rows.append(("", "", "", f"and {len(changes) - _SHOWN} more checks"))
    return rows


def _words(one: "Change") -> str:
    about = " ".join(part for part in (one.about.step, one.about.leg) if part)
    name = f"{one.about.check} ({about})" if about else one.about.check
    return f"{name}: stored {_answer(one.before)}; now {_answer(one.now)}"


def _answer(one: "CheckResult | None") -> str:
    if one is None:
        return "no result"
    return f"{one.status.value}{'' if one.gating else ' (does not count)'}: {one.reason}"


def _json(found: "Rejudged") -> dict[str, Any]:
    def answer(one: "CheckResult | None") -> dict[str, Any] | None:
        if one is None:
            return None
        return {"status": one.status.value, "gating": one.gating, "reason": one.reason}

    return {
        "run": found.run.id,
        "chain": found.run.chain,
        "policy": found.policy,
        "stored": {"status": str(found.run.status), "reason": found.run.reason},
        "now": {"status": found.status.value, "reason": found.reason},
        "differs": [
            {name: getattr(one.about, name) for name in ("check", "step", "leg", "metric")}
            | {"stored": answer(one.before), "now": answer(one.now)}
            for one in found.changes
        ],
    }
