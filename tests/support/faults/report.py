"""The suite's table: printed at the end of a test run, kept as JSON, and written into docs/faults.md."""

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
from tests.support.faults.fault import Fault, Seen

if TYPE_CHECKING:
    from tests.support.faults.case import Case

RESULTS = ROOT / "tests" / "support" / "faults" / "seen.json"
PAGE = ROOT / "docs" / "faults.md"
WRITE = "TIPCFLOW_WRITE_DOCS"
HEAD = """# Faults

What becomes of a run when something breaks: real sshd in network namespaces, the toy suite as training, and a real
Airflow for those that need one. This page is written by the tests themselves (`tests/support/faults`): with
`TIPCFLOW_WRITE_DOCS=1`, `make test-full` writes it again. The faults marked • are also run by CI.

*Noticed*: seconds from the fault to the first sign that a controller or a node's runner had noticed it. *Clean*:
seconds from there to the last process of ours on every node that can be reached, as the test lists them before
anything else is cleaned. Some tests have shorter `waits` in their policy than the
shipped ones: {waits}.

Every case also checks that leases are released, that every loss that reached the controller is stored exactly
once, and that nothing of ours runs on a reachable node 30 s after the fault was noticed.

Faults that no test names are drawn at random: [random-faults.md](random-faults.md).
{commit}
"""
_seen: dict[str, Seen] = {}


def param(fault: Fault) -> Any:
    """A fault as a test's parameter."""
    marks = () if fault.everyday else (pytest.mark.full,)
    return pytest.param(fault, id=fault.name.replace(" ", "_").replace(":", ""), marks=marks)


def judged(case: "Case", fault: Fault) -> None:
    """The test of a fault: make it, and remember what became of it."""
    case.began = time.monotonic()
    try:
        fault.scenario(case)
        seen = case.judge(fault)
    except pytest.skip.Exception:
        raise
    except BaseException as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        _seen[fault.name] = Seen("", wrong=said, took_s=case.seconds)
        raise
    _seen[fault.name] = seen
    assert not seen.wrong, f"{seen.wrong}\n{case.text}"


def print_table(terminal: Any) -> None:
    """Print what this test run saw, once; write the page when that was asked for."""
    if not _seen:
        return
    terminal.section("faults")
    terminal.write_line(f"{'fault':<44}{'status':<15}{'class':<14}{'noticed s':>10}{'clean s':>10}{'took s':>9}")
    for name, seen in _seen.items():
        line = f"{name:<44}{seen.status:<15}{seen.failure:<14}{_s(seen.detect_s):>10}{_s(seen.clean_s):>10}"
        terminal.write_line(f"{line}{seen.took_s:>9.1f}{'  WRONG' if seen.wrong else ''}")
    if os.environ.get(WRITE) == "1":
        write()
    _seen.clear()


def write() -> None:
    """Add what this test run saw to the results, and write the page from all of them."""
    from tests.support.faults.table import FAULTS

    with alone():
        known = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
        known |= {name: asdict(replace(seen, commit=commit())) for name, seen in _seen.items()}
        names = [fault.name for fault in FAULTS]
        kept = {name: known[name] for name in names if name in known}
        _put(RESULTS, json.dumps(kept, indent=1) + "\n")
        _put(PAGE, page(FAULTS, {name: Seen(**told) for name, told in kept.items()}))


@contextmanager
def alone() -> Iterator[None]:
    """Lock the results: the faults of the CLI and of Airflow run in parallel."""
    with Path(__file__).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _put(path: Path, text: str) -> None:
    """All of it or nothing."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(text)
    aside.replace(path)


@functools.cache
def commit() -> str:
    """What is tested; the results themselves are no change."""
    results = [f":!{path.relative_to(ROOT)}" for path in (RESULTS, PAGE)]
    head = _git("log", "-1", "--format=%h %cs", "--abbrev=7").split()
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *results)
    return f"{head[0]}{'+' if changed else ''} {head[1]}" if len(head) == 2 else ""


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def absent(why: str) -> NoReturn:
    """Something that a fault needs is not on this machine: who writes the page, or is CI, must have it."""
    if os.environ.get(WRITE) == "1" or os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


def page(faults: tuple[Fault, ...], seen: Mapping[str, Seen]) -> str:
    """docs/faults.md. The commit stands above the table when it is one, else in each row."""
    from tests.support.faults.case import NODE_LEASE_S

    commits = {seen[fault.name].commit for fault in faults if fault.name in seen}
    one = commits.pop() if len(commits) == 1 else ""
    by_row = bool(commits - {""})
    waits = f"a node waits {NODE_LEASE_S:.0f} s for a controller that is gone (shipped: 600 s)"
    lines = [HEAD.format(waits=waits, commit=f"\nAll rows were seen with commit {one}.\n" if one else "")]
    names = ["fault", "what is done", "goes on", "status", "class", "to blame", "noticed s", "clean s"]
    names += ["commit"] if by_row else []
    lines.append(f"| {' | '.join(names)} |\n{'|---' * len(names)}|\n")
    for fault in faults:
        words = [f"{fault.name}{' •' if fault.everyday else ''}", fault.does, "yes" if fault.goes_on else "no"]
        told = seen.get(fault.name)
        words += _cells(fault, told) + ([told.commit if told else ""] if by_row else [])
        lines.append(f"| {' | '.join(words)} |\n")
    return "".join(lines)


def _cells(fault: Fault, seen: Seen | None) -> list[str]:
    if seen is None:
        return [f"not yet covered (should be `{fault.status.value}`)", fault.failure, fault.culprit, "", ""]
    status = f"`{seen.status}`"
    if seen.wrong:
        status = f"**not as it should be** (`{fault.status.value}` expected): {seen.wrong}".replace("|", "/")
    return [status, seen.failure, seen.culprit, _s(seen.detect_s), _s(seen.clean_s)]


def _s(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.1f}"
