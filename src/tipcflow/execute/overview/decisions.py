"""Loads quarantined failures and A/B comparisons."""

from typing import TYPE_CHECKING

from tipcflow.domain.quarantine.entry import Quarantine
from tipcflow.execute.quarantine.release import progress_of
from tipcflow.report.overview.decisions import AbList, QuarantineList, QuarantineRow, ab_row, quarantine_row
from tipcflow.report.overview.today import DAY_S

if TYPE_CHECKING:
    from tipcflow.store import Store

MOST_AB = 50


def load_quarantines(
    store: "Store", *, ended: bool = False, limit: int = 50, offset: int = 0, now: float | None = None
) -> QuarantineList:
    """Return quarantines with what the runs since then have shown; nothing is released.

    Args:
        ended: also those that have ended.
        now: seconds since the epoch; None for the database's clock.
    """
    now = store.now() if now is None else now
    known = store.quarantines.all()
    active = sorted((each for each in known if each.is_active(now)), key=lambda each: each.expires_at)
    others = [each for each in known if not each.is_active(now)] if ended else []
    shown = (active + others)[offset : offset + limit]
    rows = tuple(_row(store, quarantine, now) for quarantine in shown)
    return QuarantineList(at=now, quarantines=rows, active=len(active), total=len(active) + len(others))


def _row(store: "Store", quarantine: Quarantine, now: float) -> QuarantineRow:
    progress = progress_of(store, quarantine)
    return quarantine_row(quarantine, clean=progress.clean, failed=progress.failed, now=now)


def load_ab(store: "Store", *, days: float = 90, now: float | None = None) -> AbList:
    """Return the newest A/B comparisons of the last N days."""
    now = store.now() if now is None else now
    newest = store.ab_results.newest(now - days * DAY_S, limit=MOST_AB)
    running = store.ab_results.unfinished()
    return AbList(
        at=now,
        days=days,
        comparisons=tuple(ab_row(run, result) for run, result in newest),
        running=tuple(run.id for run in running),
    )
