"""Decides whether `make test` passes when a test failed and passed on its rerun.

Such a test is flaky and fails the run, unless tests/quarantine.toml names it. An entry of that file that is older
than 30 days, has no reason or names no test is an error.

Usage:
    quarantine.py check                     validate tests/quarantine.toml (part of `make lint`)
    quarantine.py rerun FOLDER LANE...      print the lanes of tools/test.sh to rerun
    quarantine.py verdict FOLDER LANE...    print failed and flaky tests; exit code 1 if the run fails

FOLDER holds what tools/test.sh stored: LANE.N.status, pytest's exit code in attempt N (1 or 2), LANE.N.failed,
pytest's record of failed tests, and LANE.N.xml, its JUnit report.
"""

import datetime
import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
FILE = Path("tests/quarantine.toml")
ENTRIES, DAYS = 5, 30
KEYS = {"id": str, "reason": str, "since": datetime.date}
# More failed tests than these are not rerun: the cause is not flakiness.
RERUNS = ENTRIES
# Characters of an error message that are printed.
MESSAGE = 300


class Lane(NamedTuple):
    """Result of one lane of tools/test.sh.

    Attributes:
        problem: why the lane has no list of failed tests, '' if it has one.
        failed: tests that failed in every attempt.
        flaky: tests that failed in the first attempt and passed in the second.
        messages: test -> first line of its error message in the first attempt.
    """

    name: str
    problem: str = ""
    failed: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    messages: Mapping[str, str] = {}


def problems_of(text: str, today: datetime.date, is_test: Callable[[str], bool]) -> list[str]:
    """Violations of the rules for tests/quarantine.toml, one line each."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return [f"{FILE}: {error}"]
    entries = content.pop("test", [])
    problems = [f"{FILE}: unknown key {key}, expected [[test]]" for key in content]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return [*problems, f"{FILE}: test is not a list of tables, expected [[test]]"]
    if len(entries) > ENTRIES:
        problems.append(f"{FILE}: {len(entries)} entries, at most {ENTRIES}")
    ids = [entry.get("id") for entry in entries]
    for number, entry in enumerate(entries, start=1):
        where = f"{FILE}: entry {number} ({entry.get('id') or 'no id'})"
        wrong = [*_wrong_keys(entry)] or [*_wrong_values(entry, today, is_test)]
        if entry.get("id") in ids[: number - 1]:
            wrong.append("the test is named twice")
        problems += [f"{where}: {each}" for each in wrong]
    return problems


def _wrong_keys(entry: dict[str, Any]) -> Iterator[str]:
    for key in entry.keys() - KEYS.keys():
        yield f"unknown key {key}, expected {', '.join(KEYS)}"
    for key, kind in KEYS.items():
        value = entry.get(key)
        if value is None or (isinstance(value, str) and not value.strip()):
            yield f"{key} is missing"
        elif type(value) is not kind:
            yield f"{key} is {value!r}, expected {'a date such as 2026-01-31' if key == 'since' else 'text'}"


def _wrong_values(entry: dict[str, Any], today: datetime.date, is_test: Callable[[str], bool]) -> Iterator[str]:
    age = (today - entry["since"]).days
    if age > DAYS:
        yield f"{age} days old, at most {DAYS}: fix the test"
    if age < 0:
        yield f"since is {entry['since']}, which is in the future"
    if not is_test(entry["id"]):
        yield "names no test; use the id that pytest prints, with parameters"


def is_test(test_id: str) -> bool:
    """Whether pytest collects exactly this test."""
    words = ["pytest", "--collect-only", "-q", "-o", "addopts=--import-mode=importlib", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", *words, test_id], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.returncode == 0 and test_id in done.stdout.splitlines()


def read_lane(folder: Path, name: str) -> Lane:
    """Result of a lane after one or two attempts."""
    status, failed = _attempt(folder, name, 1)
    if status == 0:
        return Lane(name)
    if status is None:
        return Lane(name, problem="did not run")
    if status != 1 or not failed:
        return Lane(name, problem=f"pytest exited with status {status} and {len(failed)} failed tests")
    messages = _messages(folder / f"{name}.1.xml", failed)
    status, again = _attempt(folder, name, 2)
    if status == 0:
        again = ()
    elif status != 1 or not again:
        again = failed
    flaky = tuple(test for test in failed if test not in again)
    return Lane(name, failed=again, flaky=flaky, messages=messages)


def _messages(report: Path, tests: Sequence[str]) -> dict[str, str]:
    """First line of the error message of each failed test in a JUnit report, shortened."""
    if not report.is_file():
        return {}
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 (written by pytest)
        error = next((child for child in case if child.tag in ("failure", "error")), None)
        if error is not None:
            line = (error.get("message") or "").strip().partition("\n")[0]
            found[f"{case.get('classname')}.{case.get('name')}"] = line[:MESSAGE]
    return {test: found.get(_report_name(test), "") for test in tests}


def _report_name(test: str) -> str:
    """Name in a JUnit report: `a/b.py::C::test[x/y]` has the class name `a.b.C` and the name `test[x/y]`."""
    path, bracket, parameters = test.partition("[")
    return path.replace("/", ".").replace(".py::", ".").replace("::", ".") + bracket + parameters


def _attempt(folder: Path, name: str, number: int) -> tuple[int | None, tuple[str, ...]]:
    """Exit code (None: the attempt did not run) and failed tests of an attempt."""
    status, failed = folder / f"{name}.{number}.status", folder / f"{name}.{number}.failed"
    if not status.is_file():
        return None, ()
    tests = tuple(json.loads(failed.read_text())) if failed.is_file() else ()
    return int(status.read_text()), tests


def to_rerun(lanes: Sequence[Lane]) -> list[str]:
    """Names of the lanes whose failed tests are to be rerun; empty if the run fails anyway."""
    failed = sum(len(lane.failed) for lane in lanes)
    if failed > RERUNS or any(lane.problem for lane in lanes):
        return []
    return [lane.name for lane in lanes if lane.failed]


def verdict(lanes: Sequence[Lane], quarantined: Sequence[str]) -> tuple[list[str], int]:
    """Lines to print and the exit code of the whole run."""
    lines = [f"{lane.name}: {lane.problem}" for lane in lanes if lane.problem]
    lines += [line for lane in lanes for test in lane.failed for line in _lines("failed", test, lane)]
    outside, inside = f"flaky (failed, then passed; not in {FILE})", f"flaky (failed, then passed; in {FILE})"
    flaky = [(lane, test) for lane in lanes for test in lane.flaky]
    lines += [line for lane, test in flaky if test not in quarantined for line in _lines(outside, test, lane)]
    code = 1 if lines else 0
    lines += [line for lane, test in flaky if test in quarantined for line in _lines(inside, test, lane)]
    return lines, code


def _lines(label: str, test: str, lane: Lane) -> list[str]:
    message = lane.messages.get(test)
    return [f"{label}: {test}", *([f"    {message}"] if message else [])]


def main(words: Sequence[str]) -> int:
    """Run one of the commands above."""
    text = (ROOT / FILE).read_text(encoding="utf-8")
    match words:
        case ["check"]:
            problems = problems_of(text, datetime.datetime.now(tz=datetime.UTC).date(), is_test)
            print(*problems, sep="\n", end="\n" if problems else "")
            return 1 if problems else 0
        case ["rerun", folder, *names]:
            print(*to_rerun([read_lane(Path(folder), name) for name in names]))
            return 0
        case ["verdict", folder, *names]:
            quarantined = [entry["id"] for entry in tomllib.loads(text).get("test", [])]
            lines, code = verdict([read_lane(Path(folder), name) for name in names], quarantined)
            print(*lines, sep="\n", end="\n" if lines else "")
            return code
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
