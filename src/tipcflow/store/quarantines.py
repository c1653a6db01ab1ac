"""Quarantines of failures: who made and released them, when and why."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, func, insert, select, text, update

from tipcflow.domain import ConfigError
from tipcflow.domain.quarantine.entry import Quarantine
from tipcflow.store.base import Part, numbered_row
from tipcflow.store.schema import quarantines

_SCOPE = ("chain", "mode", "environment", "check", "step", "leg", "metric", "signature")


class Quarantines(Part):
    """Table quarantines; rows are never removed."""

    def add(self, quarantine: Quarantine, *, per_day: int) -> Quarantine:
        """Store a quarantine; return it with its number.

        Args:
            per_day: maximum number of new ones within 24 hours, over all chains.

        Raises:
            ConfigError: this failure is in quarantine, or there are too many new ones.
        """
        at = quarantine.created_at
        with self._write() as connection:
            _lock(connection)
            same = [quarantines.c[_column(name)] == getattr(quarantine, name) for name in _SCOPE]
            for row in connection.execute(select(quarantines).where(*same)).mappings():
                known = _quarantine(row)
                if known.is_active(at):
                    raise ConfigError(
                        f"this failure of {known.about} is in quarantine",
                        key="CHECK",
                        found=known.label,
                        expected="a failure that is not in quarantine",
                        hint=f"`tipcflow quarantine show {known.number}`",
                    )
            day = select(func.count()).where(quarantines.c.created_at > at - 86_400)
            new = int(connection.execute(day).scalar_one())
            if new >= per_day:
                raise ConfigError(
                    "too many new quarantines",
                    key="quarantine.per_day",
                    found=f"{new} within 24 hours",
                    expected=f"at most {per_day} a day by the policy",
                    hint="release others, or fix the cause that they share",
                )
            last = connection.execute(select(func.max(quarantines.c.number))).scalar()
            made = quarantine.model_copy(update={"number": int(last or 0) + 1})
            fields = made.model_dump(exclude={"check"}) | {"name": made.check, "evidence": list(made.evidence)}
            connection.execute(insert(quarantines), fields)
        return made

    def get(self, number: int) -> Quarantine:
        """Return a quarantine.

        Raises:
            ConfigError: there is none with that number.
        """
        with self._read() as connection:
            return _quarantine(numbered_row(connection, quarantines, number, "quarantine"))

    def of_line(self, chain: str, mode: str, environment: str) -> list[Quarantine]:
        """Return all quarantines of a chain in a mode and an environment class, oldest first."""
        query = select(quarantines).where(
            quarantines.c.chain == chain, quarantines.c.mode == mode, quarantines.c.environment == environment
        )
        with self._read() as connection:
            rows = connection.execute(query.order_by(quarantines.c.number)).mappings()
            return [_quarantine(row) for row in rows]

    def all(self, *, chain: str = "") -> list[Quarantine]:
        """Return all quarantines, newest first.

        Args:
            chain: only of this chain; '' for all.
        """
        query = select(quarantines).order_by(quarantines.c.number.desc())
        if chain:
            query = query.where(quarantines.c.chain == chain)
        with self._read() as connection:
            return [_quarantine(row) for row in connection.execute(query).mappings()]

    def release(self, number: int, *, at: float, who: str, why: str) -> bool:
        """End a quarantine; return False if it had ended."""
        still = (
            quarantines.c.number == number,
            quarantines.c.released_at.is_(None),
            quarantines.c.expires_at > at,
        )
        fields = {"released_at": at, "released_by": who, "released_because": why}
        with self._write() as connection:
            return bool(connection.execute(update(quarantines).where(*still).values(**fields)).rowcount)


def _lock(connection: Connection) -> None:
    """Let one transaction at a time add a quarantine; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE quarantines IN SHARE ROW EXCLUSIVE MODE"))


def _column(field: str) -> str:
    return "name" if field == "check" else field


def _quarantine(row: Mapping[Any, Any]) -> Quarantine:
    fields = dict(row)
    return Quarantine(check=fields.pop("name"), **fields)
