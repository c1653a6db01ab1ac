"""Texts of requests: PostgreSQL refuses the character NUL, so no stored name has it."""

from fastapi import HTTPException, Request

_SHOWN = 50


def refuse_nul(request: Request) -> None:
    """A dependency of every route: 422 for a NUL in the path or the query."""
    for name, value in (*request.path_params.items(), *request.query_params.multi_items()):
        check_text(name, str(value))


def check_text(name: str, value: str) -> None:
    """Raise HTTPException 422 for a NUL in a value, or in its name."""
    if "\0" in name or "\0" in value:
        shown = name.replace("\0", "\\x00")[:_SHOWN]
        raise HTTPException(422, f"{shown}: found {value[:_SHOWN]!r}, expected text without the character NUL")
