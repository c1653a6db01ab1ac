"""What a terminal receives: colors unless NO_COLOR or TERM=dumb rules them out."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.stories import T0, a_run, record_run

from tipcflow.store import Store

pytestmark = pytest.mark.process


def on_terminal(words: list[str], **variables: str) -> str:
    """What `tipcflow` writes to a terminal of 80 columns."""
    screen, keyboard = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **variables}
    ended = subprocess.Popen(
        [sys.executable, "-m", "tipcflow", *words],
        stdin=keyboard,
        stdout=keyboard,
        stderr=keyboard,
        env=environment,
    )
    os.close(keyboard)
    pieces = []
    while True:
        try:
            piece = os.read(screen, 65536)
        except OSError:  # Linux reports the end of a terminal as an error
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(screen)
    assert ended.wait(60) == 0
    return b"".join(pieces).decode()


@pytest.fixture
def runs(database: Path) -> None:
    with Store.open() as store:
        record_run(store, a_run("20261121t093005-mobilenet-0000", created_at=T0))


@pytest.mark.parametrize("words", [["runs"], ["show", "latest"], ["plan", "--help"]])
def test_terminal_receives_colors(runs: None, words: list[str]) -> None:
    assert "\x1b[" in on_terminal(words)


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
@pytest.mark.parametrize("words", [["runs"], ["show", "latest"], ["suites"]])
def test_terminal_without_color_support_receives_plain_text(
    runs: None, words: list[str], variables: dict[str, str]
) -> None:
    result = on_terminal(words, **variables)
    assert result
    assert "\x1b" not in result


def test_no_line_of_the_list_exceeds_80_columns(runs: None) -> None:
    assert max(len(line) for line in on_terminal(["runs"], NO_COLOR="1").splitlines()) <= 80
