"""Compares the packages that requirements/*.txt pin with the databases of known vulnerabilities (`make audit`).

    audit.py [--offline-ok] PIP_AUDIT [OPTION...]

OPTION goes to pip-audit; without one, the database of PyPI is queried, or OSV if the package index has none.
Exit codes: 1 for a vulnerability with a fix that requirements/accepted.toml does not name; 2 for an invalid
requirements/accepted.toml, and without a response for some or all packages, which is 0 with --offline-ok.
"""

import datetime
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ACCEPTED = Path("requirements/accepted.toml")
KEYS = {"id": str, "reason": str, "until": datetime.date}
SERVICES = ("pypi", "osv")
# A database that does not respond must not stop CI: seconds per request, and in all.
REQUEST_S, TOTAL_S = 10, 180
_PIN = re.compile(r"(?m)^([\w.-]+)==([^\s;\\]+)")

Pins = Mapping[tuple[str, str], list[str]]


class Result(NamedTuple):
    """What a database knows.

    Attributes:
        problem: why it was not queried, '' if it was.
        found: pip-audit's list of packages with their vulnerabilities.
        unknown: packages that the database does not have.
    """

    problem: str = ""
    found: Sequence[Mapping[str, Any]] = ()
    unknown: Sequence[str] = ()


def read_pins(folder: Path) -> Pins:
    """Return (package, version) -> names of the files that pin it."""
    pins: dict[tuple[str, str], list[str]] = {}
    for path in sorted(folder.glob("*.txt")):
        for name, version in _PIN.findall(path.read_text()):
            pins.setdefault((name.lower(), version), []).append(path.stem)
    return pins


def read_accepted(text: str, today: datetime.date) -> dict[str, str]:
    """Return id -> reason of the vulnerabilities that are accepted today.

    Raises:
        ValueError: the file is invalid, or an entry has expired; the message names the entry.
    """
    content = tomllib.loads(text)
    entries = content.pop("accepted", [])
    if content or not isinstance(entries, list):
        raise ValueError(f"unknown key {', '.join(content) or 'accepted'}, expected [[accepted]]")
    accepted = {}
    for number, entry in enumerate(entries, start=1):
        where = f"entry {number} ({entry.get('id') or 'no id'})"
        if entry.keys() != KEYS.keys() or any(type(entry[key]) is not kind for key, kind in KEYS.items()):
            raise ValueError(
                f"{where}: expected the keys id and reason, texts, and until, a date such as 2026-01-31"
            )
        if entry["until"] < today:
            raise ValueError(f"{where}: was accepted until {entry['until']}")
        accepted[entry["id"]] = entry["reason"]
    return accepted


def query(program: str, options: Sequence[str], pins: Sequence[tuple[str, str]]) -> Result:
    """Run pip-audit for pins with different names."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("".join(f"{name}=={version}\n" for name, version in pins))
        file.flush()
        command = [program, "--no-deps", "--disable-pip", "--progress-spinner=off", "--format=json", "--desc=off"]
        command += [f"--timeout={REQUEST_S}", f"--requirement={file.name}", *options]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TOTAL_S, check=False)
        except subprocess.TimeoutExpired:
            return Result(f"no response within {TOTAL_S} s")
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return Result(lines[-1][:120] if lines else f"pip-audit ended with code {done.returncode}")
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    return Result("", [package for package in packages if package.get("vulns")], unknown)


def choose(program: str, options: Sequence[str], pins: Pins) -> tuple[Sequence[str], str]:
    """Return options of the first database that has one of three packages, or why there is none."""
    probe = dict(list(pins)[:3]).items()
    problems = []
    for given in [options] if options else [[f"--vulnerability-service={name}"] for name in SERVICES]:
        result = query(program, given, list(probe))
        if not result.problem and len(result.unknown) < len(probe):
            return given, ""
        problems.append(f"{' '.join(given)}: {result.problem or 'it has no packages'}")
    return [], "; ".join(problems)


def batches(pins: Pins) -> Iterator[list[tuple[str, str]]]:
    """Split pins: pip-audit refuses two versions of a package."""
    left = list(pins)
    while left:
        batch = dict(reversed(left))
        yield list(batch.items())
        left = [pin for pin in left if pin not in batch.items()]


def report(result: Result, pins: Pins, accepted: Mapping[str, str]) -> tuple[list[str], int]:
    """Return lines for the reader, and the number of vulnerabilities that must be fixed."""
    lines, failures = [], 0
    for package in result.found:
        name, version = package["name"], package["version"]
        files = ", ".join(pins.get((name.lower(), version), []))
        for known in package["vulns"]:
            names = [known["id"], *known.get("aliases", ())]
            reason = next((accepted[each] for each in names if each in accepted), "")
            fixes = ", ".join(known["fix_versions"])
            word = (
                f"accepted, {reason}"
                if reason
                else f"fixed in {fixes}: run make lock"
                if fixes
                else "has no fix yet"
            )
            lines.append(f"{name} {version} ({files}): {known['id']} {word}")
            failures += bool(fixes and not reason)
    return lines, failures


def left_out(unknown: Sequence[str]) -> str:
    """Return which packages the database does not have; '' if it has all."""
    names = sorted(set(unknown))
    return f"not in the database: {', '.join(names[:8])}{', …' if len(names) > 8 else ''}" if names else ""


def main(arguments: Sequence[str]) -> int:
    """Audit all pins; print the report.

    A batch of pins without a response does not hide the vulnerabilities of others.
    """
    is_offline_ok = arguments[:1] == ["--offline-ok"]
    program, *options = arguments[is_offline_ok:]
    try:
        accepted = read_accepted((ROOT / ACCEPTED).read_text(), datetime.datetime.now(tz=datetime.UTC).date())
    except ValueError as error:
        print(f"error: {ACCEPTED}: {error}", file=sys.stderr)
        return 2
    pins = read_pins(ROOT / "requirements")
    chosen, problem = choose(program, options, pins)
    queried = [] if problem else [(batch, query(program, chosen, batch)) for batch in batches(pins)]
    done = [(batch, result) for batch, result in queried if not result.problem]
    failures = 0
    if done:
        # First what was found: another batch without a response does not hide a vulnerability.
        found = [package for _, result in done for package in result.found]
        unknown = [name for _, result in done for name in result.unknown]
        lines, failures = report(Result("", found), pins, accepted)
        count = sum(len(batch) for batch, _ in done) - len(unknown)
        print("\n".join([*lines, f"{count} packages audited; vulnerabilities to fix: {failures}"]))
        if missing := left_out(unknown):
            print(f"\n==== NOT AUDITED: {len(unknown)} of {len(pins)} packages: {missing} ====\n")
    if problem:
        print(f"\n==== NOT AUDITED: no database of vulnerabilities is reachable: {problem} ====\n")
    elif problem := next((result.problem for _, result in queried if result.problem), ""):
        left = sum(len(batch) for batch, result in queried if result.problem)
        print(f"\n==== NOT AUDITED: {left} of {len(pins)} packages: {problem} ====\n")
    if failures:
        return 1
    return 2 if problem and not is_offline_ok else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
