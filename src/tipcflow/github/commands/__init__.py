"""Commands in comments of pull requests.

Public: `__all__`.
"""

from tipcflow.github.commands.grammar import (
    FORMS,
    HELP,
    Ab,
    Accept,
    Approve,
    Cancel,
    Command,
    Help,
    Rerun,
    Run,
    Wrong,
    parse,
)

__all__ = [
    "FORMS",
    "HELP",
    "Ab",
    "Accept",
    "Approve",
    "Cancel",
    "Command",
    "Help",
    "Rerun",
    "Run",
    "Wrong",
    "parse",
]
