"""docs/tutorial/dialect.md: its files are written, its commands run, and their output is the page's."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[4] / "docs" / "tutorial" / "dialect.md"
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
# Exit codes of the page's commands: a file that does not match, and a script that differs, fail.
CODES = [1, 0, 1, 0, 0, 0]


@pytest.mark.process
def test_the_page_leads_from_a_difference_to_an_equal_dialect(
    tipcflow: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path / "configs"))
    codes = []
    for _, title, text in _BLOCK.findall(PAGE.read_text()):
        if title:
            path = tmp_path / title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            continue
        command, _, shown = text.partition("\n")
        done = tipcflow(*command.removeprefix("$ tipcflow ").split())
        printed = done.out + done.err
        codes.append(done.code)
        for part in re.split(r"(?m)^…\n", shown):
            assert part in printed, (command, part, printed)
    assert codes == CODES
