"""Alerts with their history: what runs reported, and what users decided."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, func, insert, select, text, update

from tipcflow.domain import Run, Status
from tipcflow.domain.alert.entry import TIPCFLOW, Alert, AlertEvent, AlertState, EventKind, Moved
from tipcflow.store.base import Part, numbered_row
from tipcflow.store.run.line_states import is_state
from tipcflow.store.schema import alert_events, alerts, runs

_GREEN = (Status.PASS, Status.IMPROVEMENT)
# Events that a run causes, each at most once per alert.
_OF_RUNS = (EventKind.OPENED, EventKind.SEEN, EventKind.GONE, EventKind.REOPENED)
_OPENS = (EventKind.OPENED, EventKind.REOPENED)
_REPORTS = (*_OPENS, EventKind.SEEN)
# Databases limit the number of values in a query.
_AT_ONCE = 500


class TrackedAlerts(Part):
    """Tables alerts and alert_events; rows are never removed."""

    def open(self, alert: Alert, reason: str, *, at: float) -> Alert:
        """Store a new alert; return it with its number, and with its group if it has none.

        A run opens one alert at most: if the run has opened one, that one is returned.
        """
        with self._write() as connection:
            _lock(connection)
            opened = select(alerts).where(alerts.c.first == alert.first)
            if known := connection.execute(opened).mappings().first():
                return _alert(known)
            number = int(connection.execute(select(func.max(alerts.c.number))).scalar() or 0) + 1
            made = alert.model_copy(update={"number": number, "group": alert.group or number})
            connection.execute(insert(alerts), _row(made))
            event = AlertEvent(
                alert=number, at=at, who=TIPCFLOW, kind=EventKind.OPENED, run=made.first, text=reason
            )
            _add(connection, event)
        return made

    def change(self, event: AlertEvent, **fields: Any) -> Alert:
        """Change only these fields of an alert, with the event that changed them; return the stored alert.

        Args:
            event: its ordinal is assigned here. A second event of a run for one alert changes nothing.

        Raises:
            ConfigError: there is no such alert.
        """
        with self._write() as connection:
            _lock(connection)
            number = event.alert
            if not (event.kind in _OF_RUNS and event.run in _reporting(connection, number)):
                row = {name: list(value) if name == "metrics" else value for name, value in fields.items()}
                if row:
                    connection.execute(update(alerts).where(alerts.c.number == number).values(**row))
                _add(connection, event)
        return self.get(number)

    def get(self, number: int) -> Alert:
        """Return an alert.

        Raises:
            ConfigError: there is none with that number.
        """
        with self._read() as connection:
            return _alert(numbered_row(connection, alerts, number, "alert"))

    def of_line(self, chain: str, mode: str, environment: str) -> list[Alert]:
        """Return all alerts of a chain in a mode and an environment class, newest first."""
        line = (alerts.c.chain == chain, alerts.c.mode == mode, alerts.c.environment == environment)
        return self._select(select(alerts).where(*line))

    def of_group(self, group: int) -> list[Alert]:
        """Return the alerts of a group, newest first."""
        return self._select(select(alerts).where(alerts.c.cause == group))

    def present(self, since: float) -> list[Alert]:
        """Return the alerts whose level has not returned and whose first run began since a time, newest first."""
        return self._select(select(alerts).where(alerts.c.gone_at.is_(None), alerts.c.first_at >= since))

    def all(self, *, since: float | None = None, states: Sequence[AlertState] = ()) -> list[Alert]:
        """Return alerts, newest first.

        Args:
            since: only those reported by a run since then; None for all.
            states: only those in one of these states; empty for all.
        """
        query = select(alerts)
        if since is not None:
            query = query.where(alerts.c.newest_at >= since)
        if states:
            query = query.where(alerts.c.state.in_([state.value for state in states]))
        return self._select(query)

    def events(self, number: int) -> list[AlertEvent]:
        """Return the history of an alert, oldest first."""
        query = select(alert_events).where(alert_events.c.alert == number).order_by(alert_events.c.ordinal)
        with self._read() as connection:
            return [AlertEvent(**row) for row in connection.execute(query).mappings()]

    def of_run(self, run_id: str) -> list[Alert]:
        """Return the alerts that a run opened, reports or ended, newest first."""
        own = select(alert_events.c.alert).where(alert_events.c.run == run_id)
        return self._select(select(alerts).where(alerts.c.number.in_(own)))

    def known(self, numbers: Collection[int]) -> dict[int, Alert]:
        """Return number -> alert, of those that exist."""
        existing: list[Alert] = []
        wanted = sorted(numbers)
        for start in range(0, len(wanted), _AT_ONCE):
            existing += self._select(select(alerts).where(alerts.c.number.in_(wanted[start : start + _AT_ONCE])))
        return {alert.number: alert for alert in existing}

    def openings(self, since: float) -> dict[int, AlertEvent]:
        """Return alert -> the newest event since a time that opened or reopened it."""
        query = select(alert_events).where(alert_events.c.at >= since, alert_events.c.kind.in_(_OPENS))
        with self._read() as connection:
            rows = connection.execute(query.order_by(alert_events.c.ordinal)).mappings()
            return {row["alert"]: AlertEvent(**row) for row in rows}

    def event_count(self) -> int:
        """Return the number of all events; it only grows."""
        with self._read() as connection:
            return int(connection.execute(select(func.count()).select_from(alert_events)).scalar_one())

    def newest_events(self, numbers: Collection[int]) -> dict[int, int]:
        """Return alert -> the ordinal of its newest event."""
        newest: dict[int, int] = {}
        wanted = sorted(numbers)
        with self._read() as connection:
            for start in range(0, len(wanted), _AT_ONCE):
                some = alert_events.c.alert.in_(wanted[start : start + _AT_ONCE])
                query = select(alert_events.c.alert, func.max(alert_events.c.ordinal)).where(some)
                rows = connection.execute(query.group_by(alert_events.c.alert)).all()
                newest |= {row[0]: row[1] for row in rows}
        return newest

    def reporting(self, run_ids: Collection[str]) -> set[str]:
        """Return those of the runs that report an alert: they opened it, reopened it or are attached to it."""
        reporting: set[str] = set()
        wanted = sorted(run_ids)
        with self._read() as connection:
            for start in range(0, len(wanted), _AT_ONCE):
                some = alert_events.c.run.in_(wanted[start : start + _AT_ONCE])
                query = select(alert_events.c.run).where(some, alert_events.c.kind.in_(_REPORTS))
                reporting |= set(connection.execute(query).scalars())
        return reporting

    def last_good(self, run: Run) -> Run | None:
        """Return the newest green run of a run's line before it; None without one."""
        line = [runs.c[name] == getattr(run, name) for name in ("chain", "mode", "environment")]
        before = (runs.c.created_at < run.created_at, runs.c.status.in_(_GREEN), *is_state(runs))
        query = select(runs).where(*line, *before).order_by(runs.c.created_at.desc(), runs.c.id.desc()).limit(1)
        with self._read() as connection:
            row = connection.execute(query).mappings().first()
        return None if row is None else Run.model_validate(dict(row))

    def _select(self, query: Any) -> list[Alert]:
        with self._read() as connection:
            return [_alert(row) for row in connection.execute(query.order_by(alerts.c.number.desc())).mappings()]


def _lock(connection: Connection) -> None:
    """Let one transaction at a time change alerts; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE alerts IN SHARE ROW EXCLUSIVE MODE"))


def _reporting(connection: Connection, number: int) -> set[str]:
    query = select(alert_events.c.run).where(alert_events.c.alert == number, alert_events.c.kind.in_(_OF_RUNS))
    return set(connection.execute(query).scalars())


def _add(connection: Connection, event: AlertEvent) -> None:
    own = select(func.max(alert_events.c.ordinal)).where(alert_events.c.alert == event.alert)
    ordinal = int(connection.execute(own).scalar() or 0) + 1
    connection.execute(insert(alert_events), event.model_dump() | {"ordinal": ordinal})


def _row(alert: Alert) -> dict[str, Any]:
    return alert.model_dump(exclude={"group"}) | {"cause": alert.group, "state": alert.state.value}


def _alert(row: Mapping[Any, Any]) -> Alert:
    fields = dict(row)
    moved = tuple(Moved(**each) for each in fields.pop("metrics"))
    return Alert(group=fields.pop("cause"), metrics=moved, **fields)
