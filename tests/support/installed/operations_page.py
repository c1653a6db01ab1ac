"""The commands of docs/operations.md and other pages, for tests that run them."""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "operations.md"


def blocks(heading: str, page: Path = PAGE) -> list[str]:
    """The code blocks of a section, without its subsections, as a user would copy them."""
    text = page.read_text(encoding="utf-8")
    found = re.search(rf"(?ms)^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", text)
    assert found, heading
    return [re.sub(r"(?m)^ {4}", "", code) for code in re.findall(r"(?ms)^ *```\n(.*?)^ *```", found[1])]


def commands(heading: str, word: str) -> list[str]:
    """The lines of a section that begin with a word."""
    lines = [line for block in blocks(heading) for line in block.splitlines()]
    chosen = [line for line in lines if line.startswith(f"{word} ")]
    assert chosen, f"no command {word} in section {heading}"
    return chosen


def inline(start: str, page: Path = PAGE) -> str:
    """The first command in the text of a page, not in a block, that starts so."""
    found = re.search(rf"`({re.escape(start)}[^`]*)`", page.read_text(encoding="utf-8"))
    assert found, start
    return found[1]


def shell(text: str, env: Mapping[str, str], *, cwd: Path, seconds: float = 180) -> str:
    """Run commands in the environment of a deployment; they must succeed. Returns their output."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        env={**os.environ, **env},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout
