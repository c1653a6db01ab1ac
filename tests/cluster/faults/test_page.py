"""The page of faults and the table in code agree."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.faults.fault import DOORS, Seen, door_errors
from tests.support.faults.report import PAGE, ROOT, WRITE, absent, alone, page, results
from tests.support.faults.table import FAULTS


def test_every_fault_has_a_unique_name_and_ends_or_continues() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names)
    assert all((fault.status == "pass") is fault.goes_on for fault in FAULTS)
    assert sum(fault.everyday for fault in FAULTS) >= 8


def test_every_front_door_has_a_test_or_a_reason() -> None:
    assert door_errors(FAULTS) == []


def test_a_front_door_without_test_and_reason_is_an_error() -> None:
    fault = FAULTS[0]
    name = fault.name
    assert door_errors([replace(fault, doors=("cli",))]) == [f"{name}: no test and no reason for airflow"]
    assert door_errors([replace(fault, reasons={"cli": "x"})]) == [f"{name}: a test and a reason for cli"]
    for text in (" ", "x" * 61):
        found = door_errors([replace(fault, doors=("cli",), reasons={"airflow": text})])
        assert found == [f"{name}: the reason for airflow has {len(text)} characters, not 1-60"]


def test_the_reason_is_the_cell() -> None:
    rows = dict(zip((one.name for one in FAULTS), page(FAULTS, {}).splitlines()[-len(FAULTS) :], strict=True))
    for fault in FAULTS:
        cells = rows[fault.name].strip("| ").split(" | ")[-len(DOORS) :]
        assert cells == [fault.reasons.get(door, "not tested yet") for door in DOORS]


def test_the_page_is_written_from_the_table_and_the_results() -> None:
    with alone():
        seen, text = results(), PAGE.read_text()
    assert page(FAULTS, seen) == text, "TIPCFLOW_WRITE_DOCS=1 make test-full writes docs/faults.md"


def test_commit_shared_by_all_results_is_above_the_table() -> None:
    one = "abc1234 2026-01-02"
    seen = {fault.name: {door: Seen(str(fault.status), commit=one) for door in fault.doors} for fault in FAULTS}
    head, _, table = page(FAULTS, seen).partition("| fault |")
    assert f"All results are of commit {one}." in head
    assert "abc1234" not in table
    name = FAULTS[0].name
    mixed = {**seen, name: {"cli": replace(seen[name]["cli"], commit="def5678+ 2026-01-03")}}
    head, _, table = page(FAULTS, mixed).partition("| fault |")
    assert "of commit" not in head
    assert table.splitlines()[0].endswith("| commit |")
    assert (table.count(f"{one} |"), table.count("def5678+ 2026-01-03 |")) == (len(FAULTS) - 1, 1)


def test_table_of_faults_has_a_column_per_front_door() -> None:
    fault, alone_there = FAULTS[0], FAULTS[-1]
    assert (fault.doors, alone_there.doors) == (("cli", "airflow"), ("airflow",))
    reason = alone_there.reasons["cli"]
    seen = {fault.name: {"cli": Seen("failed", "hang", "node b", 1.0, 2.0), "airflow": Seen("pass", wrong="a|b")}}
    rows = page((fault, alone_there), seen).splitlines()[-2:]
    assert rows[0].endswith("| hang | node b | `failed` (noticed 1.0 s, clean 2.0 s) | **wrong**: pass a/b |")
    assert rows[1].endswith(f"| {reason} | not tested yet |")


def test_two_processes_write_at_the_same_time(tmp_path: Path) -> None:
    """The CLI's faults and Airflow's run in two lanes."""
    names = [fault.name for fault in FAULTS]
    code = (
        "import sys; from pathlib import Path; from tests.support.faults import report; "
        "from tests.support.faults.fault import Seen; "
        "report.RESULTS, report.PAGE = Path(sys.argv[1], 'r'), Path(sys.argv[1], 'p')\n"
        "report.commit = lambda: ''\n"
        "for name in sys.argv[2:]:\n"
        " report._seen.clear(); report._seen[name, 'cli'] = Seen('pass'); report.write()"
    )
    lanes = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), *half], cwd=ROOT)
        for half in (names[::2], names[1::2])
    ]
    assert [lane.wait(120) for lane in lanes] == [0, 0]
    assert list(json.loads((tmp_path / "r").read_text())) == names
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p", "r"]


@pytest.mark.parametrize(("variable", "kind"), [("CI", pytest.fail.Exception), (WRITE, pytest.fail.Exception)])
def test_missing_program_fails_in_ci_and_skips_elsewhere(
    monkeypatch: pytest.MonkeyPatch, variable: str, kind: type[BaseException]
) -> None:
    for name in ("CI", WRITE):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(pytest.skip.Exception):
        absent("no faketime")
    monkeypatch.setenv(variable, "1")
    with pytest.raises(kind):
        absent("no faketime")
