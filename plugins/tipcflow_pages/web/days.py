"""Days in the URL of a page."""

from datetime import UTC, datetime

from fastapi import HTTPException


def day_limit(name: str, text: str, *, end: bool = False) -> float | None:
    """Return the start of a day in UTC, or its end; None without one."""
    if not text:
        return None
    try:
        at = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise HTTPException(422, f"{name}: found {text[:50]!r}, expected a day like 2026-11-24") from error
    return at + 86_400 - 1e-3 if end else at
