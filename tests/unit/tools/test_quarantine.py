"""The rule for flaky tests: `make test` fails, unless tests/quarantine.toml names the test."""

import datetime
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
TODAY = datetime.date(2026, 3, 31)
OK = '[[test]]\nid = "tests/a.py::test_a"\nreason = "slow disk, issue 1"\nsince = 2026-03-01\n'
FLAKY = """
import pathlib

def test_steady():
    pass

def test_flaky():
    mark = pathlib.Path("ran")
    first = not mark.exists()
    mark.touch()
    assert not first
"""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("quarantine", ROOT / "tools" / "quarantine.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_entry_of_thirty_days_with_a_reason_is_valid(tool: ModuleType) -> None:
    assert tool.problems_of(OK, TODAY, lambda test: test == "tests/a.py::test_a") == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[test]", "tests/quarantine.toml: Expected ']]'"),
        ("days = 40", "tests/quarantine.toml: unknown key days, expected [[test]]"),
        ("[test]\nid = 'a'", "tests/quarantine.toml: test is not a list of tables, expected [[test]]"),
        (OK.replace("reason = ", "cause = "), "unknown key cause, expected id, reason, since"),
        (OK.replace("slow disk, issue 1", " "), "reason is missing"),
        (OK.replace("since = 2026-03-01", ""), "since is missing"),
        (OK.replace("2026-03-01", "'2026-03-01'"), "since is '2026-03-01', expected a date such as 2026-01-31"),
        (OK.replace("2026-03-01", "2026-03-01T10:00:00"), "expected a date such as 2026-01-31"),
        (OK.replace("2026-03-01", "2026-02-28"), "31 days old, at most 30: fix the test"),
        (OK.replace("2026-03-01", "2026-04-01"), "since is 2026-04-01, which is in the future"),
        (OK.replace("::test_a", "::test_b"), "names no test; use the id that pytest prints, with parameters"),
        (OK * 2, "entry 2 (tests/a.py::test_a): the test is named twice"),
    ],
)
def test_every_violation_is_a_single_line(tool: ModuleType, text: str, problem: str) -> None:
    problems = tool.problems_of(text, TODAY, lambda test: test == "tests/a.py::test_a")
    assert any(problem in line for line in problems), problems
    assert all(line.startswith("tests/quarantine.toml: ") for line in problems)


def test_at_most_five_entries_are_allowed(tool: ModuleType) -> None:
    entries = [OK.replace("test_a", f"test_{number}") for number in range(6)]
    assert tool.problems_of("".join(entries[:5]), TODAY, lambda _: True) == []
    assert tool.problems_of("".join(entries), TODAY, lambda _: True) == [
        "tests/quarantine.toml: 6 entries, at most 5"
    ]


@pytest.mark.process
def test_a_test_is_named_with_its_parameters(tool: ModuleType) -> None:
    file = "tests/unit/tools/test_quarantine.py"
    assert tool.is_test(f"{file}::test_at_most_five_entries_are_allowed")
    for wrong in (
        file,
        f"{file}::test_no",
        f"{file}::test_every_violation_is_a_single_line",
        "tests/no.py::test_no",
    ):
        assert not tool.is_test(wrong), wrong


def test_the_shipped_file_is_valid(tool: ModuleType) -> None:
    assert tool.main(["check"]) == 0


@pytest.fixture
def store(tmp_path: Path) -> Callable[..., None]:
    """Store the exit code of an attempt, and its failed tests."""

    def store(lane: str, attempt: int, status: int, *failed: str) -> None:
        (tmp_path / f"{lane}.{attempt}.status").write_text(f"{status}\n")
        if failed:
            (tmp_path / f"{lane}.{attempt}.failed").write_text(json.dumps(dict.fromkeys(failed, True)))

    return store


def lanes(tool: ModuleType, folder: Path) -> list[object]:
    return [tool.read_lane(folder, name) for name in ("plain", "nodes")]


def test_all_tests_passed(tool: ModuleType, tmp_path: Path, store: Callable[..., None]) -> None:
    store("plain", 1, 0)
    store("nodes", 1, 0)
    assert tool.to_rerun(lanes(tool, tmp_path)) == []
    assert tool.verdict(lanes(tool, tmp_path), []) == ([], 0)


@pytest.mark.parametrize("quarantined", [[], ["t::b"], ["t::a"]])
def test_a_flaky_test_fails_the_run_unless_quarantined(
    tool: ModuleType, tmp_path: Path, store: Callable[..., None], quarantined: list[str]
) -> None:
    store("plain", 1, 1, "t::a")
    store("nodes", 1, 0)
    assert tool.to_rerun(lanes(tool, tmp_path)) == ["plain"]
    store("plain", 2, 0)
    lines, code = tool.verdict(lanes(tool, tmp_path), quarantined)
    assert code == (0 if "t::a" in quarantined else 1)
    word = "in" if code == 0 else "not in"
    assert lines == [f"flaky (failed, then passed; {word} tests/quarantine.toml): t::a"]


def test_a_quarantined_test_that_fails_twice_fails_the_run(
    tool: ModuleType, tmp_path: Path, store: Callable[..., None]
) -> None:
    store("plain", 1, 1, "t::a", "t::b")
    store("plain", 2, 1, "t::a")
    store("nodes", 1, 0)
    lines, code = tool.verdict(lanes(tool, tmp_path), ["t::a", "t::b"])
    assert (lines[0], code) == ("failed: t::a", 1)
    assert "t::b" in lines[1]


@pytest.mark.parametrize("second", [1, 2, 3, 5, 137])
def test_a_rerun_without_a_list_of_failed_tests_proves_nothing(
    tool: ModuleType, tmp_path: Path, store: Callable[..., None], second: int
) -> None:
    store("plain", 1, 1, "t::a")
    store("plain", 2, second)
    store("nodes", 1, 0)
    assert tool.verdict(lanes(tool, tmp_path), ["t::a"]) == (["failed: t::a"], 1)


@pytest.mark.parametrize(
    ("status", "failed", "problem"),
    [
        (None, (), "nodes: did not run"),
        (1, (), "nodes: pytest exited with status 1 and 0 failed tests"),
        (2, ("t::a",), "nodes: pytest exited with status 2 and 1 failed tests"),
        (5, (), "nodes: pytest exited with status 5 and 0 failed tests"),
        (137, (), "nodes: pytest exited with status 137 and 0 failed tests"),
    ],
)
def test_a_lane_that_ended_early_fails_the_run_without_a_rerun(
    tool: ModuleType,
    tmp_path: Path,
    store: Callable[..., None],
    status: int | None,
    failed: tuple[str, ...],
    problem: str,
) -> None:
    store("plain", 1, 1, "t::b")
    if status is not None:
        store("nodes", 1, status, *failed)
    assert tool.to_rerun(lanes(tool, tmp_path)) == []
    lines, code = tool.verdict(lanes(tool, tmp_path), ["t::a", "t::b"])
    assert (lines, code) == ([problem, "failed: t::b"], 1)


def test_more_than_five_failed_tests_are_not_rerun(
    tool: ModuleType, tmp_path: Path, store: Callable[..., None]
) -> None:
    store("plain", 1, 1, "t::a", "t::b", "t::c")
    store("nodes", 1, 1, "t::d", "t::e")
    assert tool.to_rerun(lanes(tool, tmp_path)) == ["plain", "nodes"]
    store("nodes", 1, 1, "t::d", "t::e", "t::f")
    assert tool.to_rerun(lanes(tool, tmp_path)) == []


REPORT = """<testsuites><testsuite><testcase classname="tests.t.test_a" name="test_x[a/b]">
<failure message="assert 1 == 2&#10;  more">trace</failure></testcase></testsuite></testsuites>"""


def test_the_verdict_has_the_first_line_of_the_error(
    tool: ModuleType, tmp_path: Path, store: Callable[..., None]
) -> None:
    test = "tests/t/test_a.py::test_x[a/b]"
    store("plain", 1, 1, test)
    store("plain", 2, 0)
    store("nodes", 1, 0)
    (tmp_path / "plain.1.xml").write_text(REPORT)
    lines, _ = tool.verdict(lanes(tool, tmp_path), [])
    assert lines == [f"flaky (failed, then passed; not in tests/quarantine.toml): {test}", "    assert 1 == 2"]


# The list of local nodes is that of the lane.
OWN_LIST = """import os
from pathlib import Path


def test_ok():
    if os.environ["HAS_NAMESPACES"]:
        assert list(Path("/run/tipcflow").iterdir()) == []
        Path("/run/tipcflow/a.instance").touch()
"""


def make_tree(folder: Path) -> None:
    """A repository with few tests in all lanes; one fails the first time."""
    bin_dir = folder / ".venv/bin"
    bin_dir.mkdir(parents=True)
    (bin_dir / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (bin_dir / "pytest").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pytest -q "$@"\n')
    for program in bin_dir.iterdir():
        program.chmod(0o755)
    (folder / "tools").mkdir()
    for name in ("test.sh", "quarantine.py"):
        shutil.copy(ROOT / "tools" / name, folder / "tools")
    markers = "markers =\n  full: slow\n  quiet: speeds\n"
    (folder / "pytest.ini").write_text(f"[pytest]\naddopts = --import-mode=importlib\n{markers}")
    names = (
        "dag/test_d",
        "ui/test_u",
        "cluster/test_c",
        "cluster/hangs/test_h",
        "unit/remote/test_r",
        "unit/docker/test_k",
        "e2e/faults/test_f",
        "e2e/suites/test_s",
        "e2e/another/test_o",
    )
    for name in (*names, "e2e/liars/test_l", "e2e/test_demo_a", "e2e/test_sample_suite", "e2e/test_e"):
        file = folder / "tests" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("def test_ok():\n    pass\n")
    # In two lanes.
    for name in ("cluster/test_c", "cluster/hangs/test_h"):
        (folder / "tests" / f"{name}.py").write_text(OWN_LIST)
    (folder / "tests/unit/plan").mkdir()
    (folder / "tests/unit/plan/test_p.py").write_text(FLAKY)


def run_lanes(folder: Path, *options: str, has_namespaces: bool) -> subprocess.CompletedProcess[str]:
    """tools/test.sh of a repository of make_tree."""
    return subprocess.run(
        [folder / "tools/test.sh", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
        cwd=folder,
        env={
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": "",
            "HAS_NAMESPACES": "yes" if has_namespaces else "",
        },
    )


def lane_results(output: str) -> list[str]:
    """Summaries of all lanes, without their durations."""
    lines = output.splitlines()
    part = lines[lines.index("---- lanes, before reruns") + 1 : lines.index("---- verdict") - 1]
    return [re.sub(r" in .*:", " in", line) for line in part]


@pytest.mark.process
@pytest.mark.parametrize("entry", ["test_flaky", "test_steady"])
def test_a_flaky_test_is_rerun_by_make_test(tmp_path: Path, entry: str) -> None:
    """By tools/test.sh."""
    make_tree(tmp_path)
    # Those of tools/test.sh.
    unshare = ["unshare", "--pid", "--fork", "--mount-proc", "--mount", "--net", "--uts", "--ipc", "true"]
    has_namespaces = subprocess.run(unshare, capture_output=True, check=False).returncode == 0
    today = datetime.datetime.now(tz=datetime.UTC).date()
    text = f'[[test]]\nid = "tests/unit/plan/test_p.py::{entry}"\nreason = "to be fixed"\nsince = {today}\n'
    (tmp_path / "tests/quarantine.toml").write_text(text)
    done = run_lanes(tmp_path, has_namespaces=has_namespaces)
    code = 0 if entry == "test_flaky" else 1
    assert done.returncode == code, done.stdout + done.stderr
    word = "in" if code == 0 else "not in"
    line = f"flaky (failed, then passed; {word} tests/quarantine.toml): tests/unit/plan/test_p.py::test_flaky"
    end = ["", "---- verdict", line, "    assert not True", "", f"---- exit {code}"]
    lines = done.stdout.splitlines()
    assert lines[-6:] == end
    assert lane_results(done.stdout) == [
        "4 passed in airflow",
        "2 passed in nodes",
        "1 passed in faults",
        "1 failed, 3 passed in plain",
        "1 passed in remote",
        "1 passed in liars",
        "2 passed in demo",
    ]


# The quiet test sees what the slowest test of the other lanes leaves when it ends.
SLOW = """import time
from pathlib import Path


def test_slow():
    time.sleep(3)
    Path("ended").touch()
"""
QUIET = """from pathlib import Path

import pytest


@pytest.mark.full
@pytest.mark.quiet
def test_quiet():
    assert Path("ended").exists()
"""


@pytest.mark.process
def test_quiet_tests_run_after_the_other_lanes(tmp_path: Path) -> None:
    make_tree(tmp_path)
    (tmp_path / "tests/unit/plan/test_p.py").write_text(SLOW)
    (tmp_path / "tests/e2e/liars/test_q.py").write_text(QUIET)
    (tmp_path / "tests/quarantine.toml").write_text("")
    done = run_lanes(tmp_path, "--full", has_namespaces=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert lane_results(done.stdout)[-3:] == [
        "1 passed, 1 deselected in liars",
        "2 passed in demo",
        "1 passed, 9 deselected in quiet",
    ]
