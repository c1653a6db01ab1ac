"""Help texts of commands: Typer joins the lines of the first paragraph only."""

import inspect
from typing import Any


def join_lines(command: Any) -> None:
    """Make each paragraph of a command's help one line, which Rich wraps; also those of its subcommands."""
    for child in getattr(command, "commands", {}).values():
        join_lines(child)
    if command.help:
        paragraphs = inspect.cleandoc(command.help).split("\n\n")
        command.help = "\n\n".join(" ".join(paragraph.splitlines()) for paragraph in paragraphs)
