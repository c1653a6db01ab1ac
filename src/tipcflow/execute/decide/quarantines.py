"""Decisions about quarantines: when one ends, and its release by a user."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tipcflow.domain import ConfigError
from tipcflow.domain.quarantine.entry import Quarantine
from tipcflow.report.overview.decisions import state_of

if TYPE_CHECKING:
    from tipcflow.store import Store


def end_of(text: str) -> float | None:
    """Return a date as seconds since the epoch; times without a zone are UTC. None for ''.

    Raises:
        ConfigError: the text is not a date.
    """
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(
            "is not a date", key="--until", found=text, expected="e.g. 2026-12-01 or 2026-12-01T09:30"
        ) from error
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def active_quarantine(store: "Store", number: int) -> Quarantine:
    """Return a quarantine that has not ended.

    Raises:
        ConfigError: there is none with this number, or it has ended.
    """
    quarantine, now = store.quarantines.get(number), store.now()
    if not quarantine.is_active(now):
        raise _ended(quarantine, now)
    return quarantine


def release_quarantine(store: "Store", number: int, *, who: str, why: str) -> Quarantine:
    """End a quarantine: from the next verdict on, the failure blocks.

    Raises:
        ConfigError: there is none with this number, or it has ended.
    """
    quarantine, now = store.quarantines.get(number), store.now()
    if not store.quarantines.release(number, at=now, who=who, why=why):
        raise _ended(quarantine, now)
    return store.quarantines.get(number)


def _ended(quarantine: Quarantine, now: float) -> ConfigError:
    return ConfigError(
        "the quarantine has ended",
        key="NUMBER",
        found=f"{quarantine.number}: {state_of(quarantine, now)}",
        expected="an active quarantine",
        hint="`tipcflow quarantine list`",
    )
