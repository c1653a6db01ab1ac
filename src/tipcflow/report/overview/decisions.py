"""Quarantined failures and A/B comparisons."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from tipcflow.domain import Run
from tipcflow.domain.quarantine.entry import Quarantine


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class QuarantineRow(_Model):
    """A quarantine.

    Attributes:
        state: `active`, `expired` or `released`.
        clean: consecutive clean runs on newer commits, of `needed` that end it.
        failed_since: runs that failed since it was made, newest first.
    """

    number: int
    state: str
    chain: str
    mode: str
    environment: str
    about: str
    metric: str
    signature: str
    owner: str
    who: str
    why: str
    created_at: float
    expires_at: float
    failed: int
    judged: int
    clean: int
    needed: int
    run: str
    failed_since: tuple[str, ...]
    released_by: str
    released_because: str


class QuarantineList(_Model):
    """Quarantines: active ones first, those that end first at the top; then ended ones, newest first."""

    schema_version: int = 1
    at: float
    quarantines: tuple[QuarantineRow, ...]
    active: int
    total: int


class AbMetric(_Model):
    """A metric of an A/B comparison: `ratio` of B to A with its interval, and the outcome in one word."""

    step: str
    leg: str
    metric: str
    ratio: float | str
    low: float | str
    high: float | str
    outcome: str


class AbRow(_Model):
    """An A/B comparison that has ended; `run` is its first run."""

    run: str
    chain: str
    cluster: str
    created_at: float
    a: str
    b: str
    status: str
    verdict: str
    pairs: int
    metrics: tuple[AbMetric, ...]


class AbList(_Model):
    """A/B comparisons, newest first, and runs of those that have not ended."""

    schema_version: int = 1
    at: float
    days: float
    comparisons: tuple[AbRow, ...]
    running: tuple[str, ...]


def state_of(quarantine: Quarantine, now: float) -> str:
    """Return `active`, `released` or `expired`."""
    if quarantine.is_active(now):
        return "active"
    return "expired" if quarantine.released_at is None else "released"


def quarantine_row(quarantine: Quarantine, *, clean: int, failed: tuple[str, ...], now: float) -> QuarantineRow:
    """Return the row of a quarantine.

    Args:
        clean: clean runs so far.
        failed: runs that failed since it was made, newest first.
    """
    same = ("number", "chain", "mode", "environment", "about", "metric", "signature", "owner", "who", "why")
    more = ("created_at", "expires_at", "failed", "judged", "run", "released_by", "released_because")
    return QuarantineRow(
        **{name: getattr(quarantine, name) for name in (*same, *more)},
        state=state_of(quarantine, now),
        clean=clean,
        needed=quarantine.clean_runs,
        failed_since=failed,
    )


def ab_row(run: Run, result: Mapping[str, Any]) -> AbRow:
    """Return the row of a comparison.

    Args:
        result: as stored: what `tipcflow ab --json` prints.
    """
    metrics = [row for row in result.get("metrics", ()) if isinstance(row, Mapping)]
    texts = {name: str(result.get(name, "")) for name in ("a", "b", "status", "verdict")}
    return AbRow(
        run=run.id,
        chain=run.chain,
        cluster=run.cluster,
        created_at=run.created_at,
        **texts,
        pairs=len(result.get("pairs", ())),
        metrics=tuple(AbMetric(**{name: row.get(name, "") for name in AbMetric.model_fields}) for row in metrics),
    )
