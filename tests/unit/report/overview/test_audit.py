"""The list of actions: order, filter, limit, CSV."""

from tipcflow.domain.alert.audit import AuditEntry
from tipcflow.report.overview.audit import audit_list
from tipcflow.report.overview.text import csv_of

ENTRIES = [
    AuditEntry(at=float(at), who=who, action="stop run", about="toy r1") for at, who in enumerate(["a", "b", "a"])
]


def test_newest_actions_come_first() -> None:
    listed = audit_list(ENTRIES, at=9.0, days=1, limit=2)
    assert [entry.at for entry in listed.entries] == [2.0, 1.0]
    assert listed.total == 3


def test_actions_of_one_user_are_selected() -> None:
    assert [entry.at for entry in audit_list(ENTRIES, at=9.0, days=1, limit=9, user="a").entries] == [2.0, 0.0]


def test_actions_are_rows_of_csv() -> None:
    lines = csv_of(audit_list(ENTRIES, at=9.0, days=1, limit=1)).splitlines()
    assert lines == ["at,who,action,about,run,text", "1970-01-01T00:00:02+00:00,a,stop run,toy r1,,"]
