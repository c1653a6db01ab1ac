"""Paragraphs of help texts are wrapped by Rich, not where the source breaks their lines."""

from typing import Any

import typer
from typer.main import get_command

from tipcflow.cli.commands.paragraphs import join_lines


def test_paragraphs_of_commands_and_subcommands_have_no_line_breaks() -> None:
    app = typer.Typer(help="First\nparagraph.\n\nSecond\nparagraph.")

    @app.command()
    def own() -> None:
        """Summary.

        Two
        lines.

        End.
        """

    app.callback()(lambda: None)
    group: Any = get_command(app)
    join_lines(group)
    assert group.help == "First paragraph.\n\nSecond paragraph."
    assert group.commands["own"].help == "Summary.\n\nTwo lines.\n\nEnd."
