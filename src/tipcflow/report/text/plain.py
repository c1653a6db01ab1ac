"""Untrusted text, from logs and files."""

from tipcflow.parse import strip_ansi


def one_line(text: str) -> str:
    """Log text as one line without control characters, safe for terminals and pages."""
    return " ".join("".join(char if char.isprintable() else " " for char in strip_ansi(text)).split())
