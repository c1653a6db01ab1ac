"""Decisions of users, from all tables that have them: who decided what, when and why."""

import math
from collections import Counter

from sqlalchemy import Connection, select

from tipcflow.domain.alert.audit import AuditEntry
from tipcflow.domain.alert.entry import TIPCFLOW
from tipcflow.store.base import Part
from tipcflow.store.schema import alert_events, alerts, approvals, baselines, quarantines


class Audit(Part):
    """Reads the decisions; each is stored with its subject and never removed."""

    def entries(self, since: float) -> list[AuditEntry]:
        """Return the decisions of users since a time, newest first."""
        with self._read() as connection:
            entries = [
                *_baselines(connection, since),
                *_quarantines(connection, since),
                *_alerts(connection, since),
                *_approvals(connection, since),
            ]
        return sorted(entries, key=lambda entry: (-entry.at, entry.about, entry.action))


def _baselines(connection: Connection, since: float) -> list[AuditEntry]:
    """One entry for the metrics that a command has decided together."""
    counted: Counter[AuditEntry] = Counter()
    for row in connection.execute(select(baselines).where(baselines.c.accepted_at >= since)):
        is_reset = row.value is None or math.isnan(row.value)
        word = "reset" if is_reset else "pin" if row.pinned else "accept"
        entry = AuditEntry(
            at=row.accepted_at, who=row.who, action=f"{word} baseline", about=row.chain, run=row.run, text=row.why
        )
        counted[entry] += 1
    return [
        entry.model_copy(update={"text": f"{count} metric{'s' if count > 1 else ''}: {entry.text}"})
        for entry, count in counted.items()
    ]


def _quarantines(connection: Connection, since: float) -> list[AuditEntry]:
    table = quarantines.c
    query = select(quarantines).where((table.created_at >= since) | (table.released_at >= since))
    entries = []
    for row in connection.execute(query):
        about = {"about": row.chain, "run": row.run}
        if row.created_at >= since:
            text = f"{row.name}: {row.why}"
            entries.append(AuditEntry(at=row.created_at, who=row.who, action="quarantine", text=text, **about))
        if row.released_at is not None and row.released_by != TIPCFLOW:
            text, who = f"{row.name}: {row.released_because}", row.released_by
            entries.append(
                AuditEntry(at=row.released_at, who=who, action="release quarantine", text=text, **about)
            )
    return [entry for entry in entries if entry.at >= since]


def _alerts(connection: Connection, since: float) -> list[AuditEntry]:
    query = select(alert_events, alerts.c.chain).join(alerts, alerts.c.number == alert_events.c.alert)
    query = query.where(alert_events.c.at >= since, alert_events.c.who != TIPCFLOW)
    return [
        AuditEntry(
            at=row.at,
            who=row.who,
            action=f"alert {row.alert}: {row.kind}",
            about=row.chain,
            run=row.run,
            text=row.text,
        )
        for row in connection.execute(query)
    ]


def _approvals(connection: Connection, since: float) -> list[AuditEntry]:
    """One entry for each commit of a fork whose code a user let run; `who` is the user's login on GitHub."""
    return [
        AuditEntry(
            at=row.approved_at,
            who=row.who,
            action="approve code of fork",
            about=f"{row.repository}#{row.number}",
            text=f"commit {row.head_sha}",
        )
        for row in connection.execute(select(approvals).where(approvals.c.approved_at >= since))
    ]
