"""`tipcflow plan --expects`: the evidence that a run must produce."""

import sys

import typer

from tipcflow.check.evidence import expected
from tipcflow.cli.output.output import columns, echo_lines, print_json, terminal_width
from tipcflow.cli.plan.durations import database_missing
from tipcflow.config.policy import Policy
from tipcflow.config.settings import Settings
from tipcflow.config.suite import Suite
from tipcflow.domain import LOOK_BACK, Expectation, PastRun, Plan, Status, TipcflowError
from tipcflow.domain.run_documents import FoundDocument
from tipcflow.domain.triggers import SIDE_RUNS

_GOOD = (Status.PASS, Status.IMPROVEMENT)
_NEWEST_RUNS = 200


def print_expects(made: Plan, suite: Suite, policy: Policy, settings: Settings, *, as_json: bool) -> None:
    """Print each piece of expected evidence: step, leg, rank, source and reason.

    Args:
        policy: defines how many earlier runs form a history.
    """
    history = _history(made, settings, LOOK_BACK * policy.history)
    pieces = expected(made, suite.prints, history, min_history=policy.min_history)
    if as_json:
        print_json([{"id": str(piece.key), **piece.model_dump(mode="json")} for piece in pieces])
        return
    typer.echo(f"{typer.style(made.chain, bold=True)}  {made.mode}  {len(pieces)} pieces of evidence")
    rows = [_cells(piece) for piece in pieces]
    echo_lines(columns(("EVIDENCE", "STEP", "WHAT", "FROM", "BECAUSE"), rows, width=terminal_width()))


def _cells(piece: Expectation) -> tuple[str, ...]:
    rank = f"rank {piece.rank}" + (f" on {piece.node}" if piece.node else "") if piece.rank >= 0 else ""
    length = f"{piece.epochs} epochs" if piece.epochs else f"{piece.iterations} iterations"
    what = [piece.leg, rank, piece.metric, length if piece.epochs or piece.iterations else ""]
    return (
        piece.kind.value,
        piece.step,
        ", ".join(filter(None, what)),
        piece.source.value,
        piece.because,
    )


def _history(plan: Plan, settings: Settings, search: int) -> tuple[PastRun, ...]:
    """The newest accepted runs of the chain, mode and cluster, oldest first; empty without a database,
    which planning never creates or changes."""
    from tipcflow.store import Store

    if database_missing(settings.database_url):
        return ()
    try:
        with Store.open(settings.database_url, migrate=False) as store:
            like = [
                run
                for run in store.runs.newest(chain=plan.chain, limit=_NEWEST_RUNS)
                if run.status in _GOOD
                and (run.mode, run.compat) == (plan.mode, plan.compat)
                and run.trigger not in SIDE_RUNS
                and plan.cluster in ("", run.cluster)
            ]
            like = [run for run in like if run.environment == like[0].environment][:search]
            documents = store.documents.of_runs(FoundDocument, [run.id for run in like])
            known = [run.id for run in reversed(like) if run.id in documents]
            past_runs = (PastRun(run=run_id, found=documents[run_id].root) for run_id in known)
            return tuple(past.model_copy(update={"parts": past.measured}) for past in past_runs)
    except TipcflowError as error:
        print(f"no history: {error.message}", file=sys.stderr)  # noqa: T201
        return ()
