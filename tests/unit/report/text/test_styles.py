"""A status has one color, whichever medium shows it."""

import re
from pathlib import Path

import pytest
import typer
from rich.style import Style

from tipcflow.cli.output.output import echo_lines
from tipcflow.domain import Status
from tipcflow.report.tables import status_text
from tipcflow.report.text.styles import TONES, Tone, terminal_color

CSS = Path(__file__).parents[4] / "plugins" / "tipcflow_pages" / "static" / "app.css"


def tones_of_pages() -> dict[str, str]:
    """Status word -> name of its color in the pages' style sheet."""
    rules = re.findall(
        r"^(?P<names>\.st-[^{]*)\{ --c: var\(--(?P<tone>\w+)\); \}", _one_rule_per_line(), re.MULTILINE
    )
    return {word: tone for names, tone in rules for word in re.findall(r"\.st-(\w+)", names)}


def _one_rule_per_line() -> str:
    return CSS.read_text(encoding="utf-8").replace("} .st-", "}\n.st-")


def test_pages_and_terminal_use_the_same_tone() -> None:
    pages = tones_of_pages()
    assert {status: pages[status] for status in Status} == {status: TONES[status].value for status in Status}


def test_every_tone_has_a_unique_terminal_color() -> None:
    looks = {TONES[status]: terminal_color(status) for status in Status}
    assert set(looks) == set(Tone)
    assert len(set(looks.values())) == len(Tone)


@pytest.mark.parametrize("status", list(Status))
def test_tables_and_lines_have_the_same_color(status: Status, monkeypatch: pytest.MonkeyPatch) -> None:
    styled: list[str] = []
    monkeypatch.setattr(typer, "echo", styled.append)
    echo_lines([f"{status.value} some text"])
    color, bold = terminal_color(status)
    assert styled == [typer.style(status.value, fg=color, bold=bold) + " some text"]
    style = Style.parse(str(status_text(status).style))
    assert (style.color and style.color.name, bool(style.bold)) == (color, bold)
