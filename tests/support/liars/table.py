"""All lies, and docs/liars.md, which the tests write."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.certify import ROOT
from tests.support.faults.report import WRITE, alone, commit
from tests.support.liars import inference, metrics, outputs, slower, training
from tests.support.liars.lie import Lie

LIES: tuple[Lie, ...] = (*training.LIES, *metrics.LIES, *outputs.LIES, *inference.LIES, *slower.LIES)
RESULTS = Path(__file__).with_name("seen.json")
PAGE = ROOT / "docs" / "liars.md"
HEAD = """# Liars

A suite can claim work that it did not do. Each row is one lie: the toy suite is edited, `tipcflow run` certifies
it on two local nodes with a real `sshd`, and the verdict must not be green and must name the lie. The tests in
`tests/e2e/liars` write this page (`TIPCFLOW_WRITE_DOCS=1`). CI runs the lies marked •.

{honest}

| lie | what the suite does | history | status | reason |
|---|---|---|---|---|
"""
_seen: dict[str, dict[str, str]] = {}
_honest: dict[str, Any] = {}


def saw(lie: Lie, status: str, reason: str) -> None:
    """Remember what the run of a lie ended with."""
    _seen[lie.name] = {"status": status, "reason": reason, "commit": commit()}


def saw_honest(runs: int, green: int, confirmed: int) -> None:
    """Remember how many honest runs were green, and how many of them needed a confirm run."""
    _honest.update({"runs": runs, "green": green, "confirmed": confirmed, "commit": commit()})


def write() -> None:
    """Add what this test session saw to the results, and write the page."""
    if os.environ.get(WRITE) != "1" or not (_seen or _honest):
        return
    with alone():
        known = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
        lies = {**known.get("lies", {}), **_seen}
        honest = {**known.get("honest", {}), **_honest}
        names = [lie.name for lie in LIES]
        kept = {"honest": honest, "lies": {name: lies[name] for name in names if name in lies}}
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
        PAGE.write_text(page(kept["lies"], honest))


def page(seen: Mapping[str, Mapping[str, str]], honest: Mapping[str, Any]) -> str:
    """docs/liars.md."""
    about = "Honest runs of the same suite: not run yet."
    if honest:
        about = (
            f"Honest runs of the same suite with measured times: {honest['green']} of {honest['runs']} green, "
            f"{honest['confirmed']} of them after a confirm run (commit {honest['commit']})."
        )
    commits = {row["commit"] for row in seen.values()}
    if len(commits) == 1:
        about += f" All lies were run with commit {next(iter(commits))}."
    lines = [HEAD.format(honest=about)]
    for lie in LIES:
        row = seen.get(lie.name)
        status, reason = (f"`{row['status']}`", row["reason"]) if row else ("not run yet", "")
        cells = [f"{lie.name}{' •' if lie.everyday else ''}", lie.does, "yes" if lie.history else "no", status]
        lines.append(f"| {' | '.join([*cells, _cell(reason)])} |\n")
    return "".join(lines)


def _cell(text: str) -> str:
    short = " ".join(text.split())
    return (short if len(short) <= 240 else f"{short[:240]} …").replace("|", "\\|")
