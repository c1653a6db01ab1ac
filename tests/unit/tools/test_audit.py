"""The audit of pinned packages, with a stand-in of pip-audit: its output is that of the real program."""

import datetime
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
TODAY = datetime.date(2026, 3, 31)
ACCEPTED = '[[accepted]]\nid = "CVE-1"\nreason = "not used"\nuntil = 2026-04-01\n'
# Prints the packages of the file that are known. An unreachable database is an exception, also for the last batch.
PIP_AUDIT = """#!{python}
import json, os, sys
known = {known!r}
(file,) = [word.partition("=")[2] for word in sys.argv if word.startswith("--requirement=")]
service = [word for word in sys.argv if "service" in word]
if known is None:
    sys.exit("Traceback:\\n  ...\\nConnectionError: no route " + " ".join(service))
pins = [line.split("==") for line in open(file).read().splitlines()]
if len(pins) == 1 and os.environ.get("LAST_BATCH_FAILS"):
    sys.exit("ConnectionError: connection reset")
assert len({{name for name, _ in pins}}) == len(pins), "two versions of a package"
packages = [
    {{"name": name, "version": version, "vulns": known[name]}}
    if name in known else {{"name": name, "skip_reason": "Dependency not found"}}
    for name, version in pins
]
print(json.dumps({{"dependencies": packages, "fixes": []}}))
"""
Audit = Callable[..., tuple[int, str]]


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/audit.py, for a folder with two files of requirements."""
    spec = importlib.util.spec_from_file_location("audit", ROOT / "tools" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/accepted.toml").write_text("")
    (tmp_path / "requirements/node.txt").write_text("numpy==1.26.4 \\\n    --hash=sha256:0\n")
    (tmp_path / "requirements/dev.txt").write_text(
        "Flask==3.1.3 \\\n    --hash=sha256:0\n    # via a==1\nnumpy==2.4.6 ; python_version < '3.12' \\\n"
    )
    return module


@pytest.fixture
def audit(tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Audit:
    """The exit code and the output of an audit where a database knows these vulnerabilities."""

    def run(known: dict[str, list[object]] | None, *words: str) -> tuple[int, str]:
        program = tmp_path / "pip-audit"
        program.write_text(PIP_AUDIT.format(python=sys.executable, known=json.loads(json.dumps(known))))
        program.chmod(0o755)
        code = tool.main([*words, str(program)])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run


def vulnerability(name: str, *fixes: str) -> dict[str, object]:
    return {"id": name, "fix_versions": list(fixes), "aliases": [name.replace("PYSEC", "CVE")]}


def test_a_vulnerability_with_a_fix_fails(audit: Audit) -> None:
    code, printed = audit({"flask": [vulnerability("PYSEC-1", "3.1.4", "3.2")], "numpy": []})
    assert (code, printed.splitlines()) == (
        1,
        [
            "flask 3.1.3 (dev): PYSEC-1 fixed in 3.1.4, 3.2: run make lock",
            "3 packages audited; vulnerabilities to fix: 1",
        ],
    )


def test_accepted_and_unfixed_vulnerabilities_are_reported(audit: Audit, tool: ModuleType, tmp_path: Path) -> None:
    text = ACCEPTED.replace("2026-04-01", "9999-12-31")
    (tmp_path / "requirements/accepted.toml").write_text(text)
    assert audit({"flask": [vulnerability("PYSEC-1", "3.1.4")], "numpy": [vulnerability("PYSEC-2")]}) == (
        0,
        "numpy 2.4.6 (dev): PYSEC-2 has no fix yet\nflask 3.1.3 (dev): PYSEC-1 accepted, not used\n"
        "numpy 1.26.4 (node): PYSEC-2 has no fix yet\n3 packages audited; vulnerabilities to fix: 0\n",
    )


def test_packages_that_the_database_lacks_are_named(audit: Audit) -> None:
    assert audit({"flask": []}) == (
        0,
        "1 packages audited; vulnerabilities to fix: 0\n"
        "\n==== NOT AUDITED: 2 of 3 packages: not in the database: numpy ====\n\n",
    )


@pytest.mark.parametrize(
    ("known", "why"),
    [
        (None, "--vulnerability-service=pypi: ConnectionError: no route --vulnerability-service=pypi; --vuln"),
        ({}, "--vulnerability-service=pypi: it has no packages; --vulnerability-service=osv: it has no packages"),
    ],
)
def test_an_unreachable_database_is_loud(audit: Audit, known: dict[str, list[object]] | None, why: str) -> None:
    code, printed = audit(known)
    assert (
        code,
        printed.startswith(f"\n==== NOT AUDITED: no database of vulnerabilities is reachable: {why}"),
    ) == (2, True)
    assert audit(known, "--offline-ok") == (0, printed)


@pytest.mark.parametrize(
    ("fixes", "code", "word", "count"),
    [(("3.1.4",), 1, "fixed in 3.1.4: run make lock", 1), ((), 2, "has no fix yet", 0)],
)
def test_vulnerabilities_are_reported_although_another_batch_fails(
    audit: Audit, monkeypatch: pytest.MonkeyPatch, fixes: tuple[str, ...], code: int, word: str, count: int
) -> None:
    monkeypatch.setenv("LAST_BATCH_FAILS", "1")
    known = {"flask": [vulnerability("PYSEC-1", *fixes)], "numpy": []}
    printed = (
        f"flask 3.1.3 (dev): PYSEC-1 {word}\n2 packages audited; vulnerabilities to fix: {count}\n"
        "\n==== NOT AUDITED: 1 of 3 packages: ConnectionError: connection reset ====\n\n"
    )
    assert audit(known) == (code, printed)
    assert audit(known, "--offline-ok") == (count, printed)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2026-04-01", "2026-03-30", r"entry 1 \(CVE-1\): was accepted until 2026-03-30"),
        ("2026-04-01", '"soon"', r"entry 1 \(CVE-1\): expected the keys id and reason, texts, and until, a date"),
        ("reason", "because", r"entry 1 \(CVE-1\): expected the keys"),
        ("[[accepted]]", "[[excepted]]", "unknown key excepted"),
    ],
)
def test_invalid_entries_are_refused(tool: ModuleType, old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tool.read_accepted(ACCEPTED.replace(old, new), TODAY)


def test_an_accepted_vulnerability_has_a_last_day(tool: ModuleType) -> None:
    assert tool.read_accepted(ACCEPTED, datetime.date(2026, 4, 1)) == {"CVE-1": "not used"}


def test_entries_of_the_repository_are_valid(tool: ModuleType) -> None:
    tool.read_accepted((ROOT / "requirements/accepted.toml").read_text(), datetime.date(2000, 1, 1))


def test_all_pinned_packages_are_audited(tool: ModuleType) -> None:
    pins = tool.read_pins(ROOT / "requirements")
    files = {name for names in pins.values() for name in names}
    assert files == {path.stem for path in (ROOT / "requirements").glob("*.txt")}
    in_batches = [pin for batch in tool.batches(pins) for pin in batch]
    assert sorted(in_batches) == sorted(pins)
