"""The table of faults: printed at the end of a test run, stored as JSON, and written into docs/faults.md."""

import fcntl
import functools
import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from tests.support.certify import ROOT
from tests.support.faults.fault import DOORS, Door, Fault, Seen
from tests.support.programs import missing

if TYPE_CHECKING:
    from tests.support.faults.case import Case

RESULTS = ROOT / "tests" / "support" / "faults" / "seen.json"
PAGE = ROOT / "docs" / "faults.md"
WRITE = "TIPCFLOW_WRITE_DOCS"
HEAD = """# Faults

How runs end when something breaks: real sshd in network namespaces, the toy suite as the training, and a real
Airflow. The tests write this page (`tests/support/faults`; `TIPCFLOW_WRITE_DOCS=1 make test-full`). `.ci/run`
tests the faults marked •.

The columns `tipcflow run` and Airflow show the observed status for each front door, and in parentheses

- *noticed*: seconds from the fault to the first evidence that a controller or a node's runner has noticed it;
- *clean*: seconds from there to the end of the last tipcflow process on all reachable nodes, before other cleanup.

A cell without a status contains the reason why the fault is not tested through that front door. Some tests shorten
`waits` in their policy: {waits}.

Each case also checks that leases are released, that every loss that reached the controller is stored exactly once,
and that no tipcflow process runs on a reachable node 30 s after the fault was noticed.

[Random faults](random-faults.md) combines these faults and others at random moments.
{commit}
"""
_seen: dict[tuple[str, Door], Seen] = {}


Results = Mapping[str, Mapping[str, Seen]]


def param(fault: Fault, door: Door) -> Any:
    """A fault as a test's parameter."""
    everyday = fault.everyday and door == fault.doors[0]
    marks = () if everyday else (pytest.mark.full,)
    return pytest.param(fault, id=fault.name.replace(" ", "_").replace(":", ""), marks=marks)


def judged(case: "Case", fault: Fault) -> None:
    """The test of a fault: run its scenario and record the result."""
    case.began = time.monotonic()
    try:
        fault.scenario(case)
        seen = case.judge(fault)
    except pytest.skip.Exception:
        raise
    except BaseException as error:
        result = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        _seen[fault.name, case.door] = Seen("", wrong=result, took_s=case.seconds)
        raise
    _seen[fault.name, case.door] = seen
    assert not seen.wrong, f"{seen.wrong}\n{case.text}"


def print_table(terminal: Any) -> None:
    """Print the results of this test run once; write the page if TIPCFLOW_WRITE_DOCS is 1."""
    if not _seen:
        return
    terminal.section("faults")
    terminal.write_line(f"{'fault':<44}{'status':<15}{'class':<14}{'noticed s':>10}{'clean s':>10}{'took s':>9}")
    for (name, _), seen in _seen.items():
        line = f"{name:<44}{seen.status:<15}{seen.failure:<14}{_s(seen.detect_s):>10}{_s(seen.clean_s):>10}"
        terminal.write_line(f"{line}{seen.took_s:>9.1f}{'  WRONG' if seen.wrong else ''}")
    if os.environ.get(WRITE) == "1":
        write()
    _seen.clear()


def write() -> None:
    """Add the results of this test run to the stored ones, and write the page from all of them."""
    from tests.support.faults.table import FAULTS

    with alone():
        known = results()
        for (name, door), seen in _seen.items():
            known.setdefault(name, {})[door] = replace(seen, commit=commit())
        kept = {fault.name: known[fault.name] for fault in FAULTS if fault.name in known}
        _put(RESULTS, json.dumps(kept, indent=1, default=asdict) + "\n")
        _put(PAGE, page(FAULTS, kept))


def results() -> dict[str, dict[str, Seen]]:
    """The stored results: fault -> front door -> what was observed."""
    stored = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    return {name: {door: Seen(**one) for door, one in doors.items()} for name, doors in stored.items()}


@contextmanager
def alone() -> Iterator[None]:
    """Lock the results: the faults of the CLI and of Airflow run in parallel."""
    with Path(__file__).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _put(path: Path, text: str) -> None:
    """Write a file atomically."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(text)
    aside.replace(path)


@functools.cache
def commit() -> str:
    """The tested commit; changed results and pages are not a change."""
    results = [
        f":!{path}" for path in ("docs", *(f"tests/support/{kind}/seen.json" for kind in ("faults", "liars")))
    ]
    head = _git("log", "-1", "--format=%h %cs", "--abbrev=7").split()
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *results)
    return f"{head[0]}{'+' if changed else ''} {head[1]}" if len(head) == 2 else ""


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def absent(why: str) -> NoReturn:
    """Skip a fault whose requirements this machine does not meet; CI and the page's writer fail instead."""
    if os.environ.get(WRITE) == "1":
        pytest.fail(why)
    missing(why)


def page(faults: tuple[Fault, ...], seen: Results) -> str:
    """docs/faults.md. The commit is above the table if all results share it, otherwise in each row."""
    from tests.support.faults.airflow_case import AirflowCase
    from tests.support.faults.case import Case

    commits = {one.commit for fault in faults for one in seen.get(fault.name, {}).values()}
    same = commits.pop() if len(commits) == 1 else ""
    by_row = bool(commits - {""})
    leases = f"{Case.node_lease_s:.0f} s (Airflow: {AirflowCase.node_lease_s:.0f} s)"
    waits = f"a node waits {leases} for a controller that does not run any more (default: 600 s)"
    lines = [HEAD.format(waits=waits, commit=f"\nAll results are of commit {same}.\n" if same else "")]
    names = ["fault", "what happens", "expected", "class", "root cause", "`tipcflow run`", "Airflow"]
    names += ["commit"] if by_row else []
    lines.append(f"| {' | '.join(names)} |\n{'|---' * len(names)}|\n")
    for fault in faults:
        doors = seen.get(fault.name, {})
        first = next(iter(doors.values()), None)
        words = [f"{fault.name}{' •' if fault.everyday else ''}", fault.does, f"`{fault.status.value}`"]
        words += [first.failure if first else fault.failure, first.root_cause if first else fault.root_cause]
        words += [_cell(fault, door, doors.get(door)) for door in DOORS]
        words += [", ".join(sorted({one.commit for one in doors.values()}))] if by_row else []
        lines.append(f"| {' | '.join(words)} |\n")
    return "".join(lines)


def _cell(fault: Fault, door: Door, seen: Seen | None) -> str:
    if door not in fault.doors:
        return fault.reasons[door]
    if seen is None:
        return "not tested yet"
    if seen.wrong:
        return f"**wrong**: {seen.status} {seen.wrong}".replace("|", "/")
    if seen.detect_s is None:
        return f"`{seen.status}`"
    return f"`{seen.status}` (noticed {_s(seen.detect_s)}, clean {_s(seen.clean_s)})"


def _s(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.1f} s"
