"""Actions of users: decisions, and on the page also what users did in Airflow."""

from pydantic import BaseModel, ConfigDict

from tipcflow.domain.alert.audit import AuditEntry


class AuditList(BaseModel):
    """Actions of users within the last days, newest first; `total` before the list was cut."""

    model_config = ConfigDict(frozen=True)

    schema_version: int = 1
    at: float
    days: float
    total: int
    entries: tuple[AuditEntry, ...]


def audit_list(entries: list[AuditEntry], *, at: float, days: float, limit: int, user: str = "") -> AuditList:
    """Return the newest entries, of one user if `user` is not empty."""
    wanted = [entry for entry in entries if user in ("", entry.who)]
    wanted.sort(key=lambda entry: -entry.at)
    return AuditList(at=at, days=days, total=len(wanted), entries=tuple(wanted[:limit]))
