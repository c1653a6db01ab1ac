"""The page of faults and the table in code say the same."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.faults.fault import Seen
from tests.support.faults.report import PAGE, RESULTS, ROOT, WRITE, absent, alone, page
from tests.support.faults.table import FAULTS


def test_every_fault_has_a_name_of_its_own_and_ends_or_goes_on() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names)
    assert all((fault.status == "pass") is fault.goes_on for fault in FAULTS)
    assert sum(fault.everyday for fault in FAULTS) >= 8


def test_the_page_is_written_from_the_table_and_the_results() -> None:
    with alone():
        seen = {name: Seen(**told) for name, told in json.loads(RESULTS.read_text()).items()}
        text = PAGE.read_text()
    assert page(FAULTS, seen) == text, "TIPCFLOW_WRITE_DOCS=1 make test-full writes docs/faults.md again"


def test_the_commit_stands_in_the_head_when_all_rows_share_it() -> None:
    seen = {fault.name: Seen(str(fault.status), commit="abc1234 2026-01-02") for fault in FAULTS}
    head, _, table = page(FAULTS, seen).partition("| fault |")
    assert "All rows were seen with commit abc1234 2026-01-02." in head
    assert "abc1234" not in table
    name = FAULTS[0].name
    mixed = {**seen, name: replace(seen[name], commit="def5678+ 2026-01-03")}
    head, _, table = page(FAULTS, mixed).partition("| fault |")
    assert "commit" not in head
    assert table.splitlines()[0].endswith("| commit |")
    assert (table.count("abc1234 2026-01-02 |"), table.count("def5678+ 2026-01-03 |")) == (len(FAULTS) - 1, 1)


def test_two_processes_write_at_the_same_time(tmp_path: Path) -> None:
    """The CLI's faults and Airflow's run in two lanes."""
    names = [fault.name for fault in FAULTS]
    code = (
        "import sys; from pathlib import Path; from tests.support.faults import report; "
        "from tests.support.faults.fault import Seen; "
        "report.RESULTS, report.PAGE = Path(sys.argv[1], 'r'), Path(sys.argv[1], 'p')\n"
        "report.commit = lambda: ''\n"
        "for name in sys.argv[2:]:\n report._seen.clear(); report._seen[name] = Seen('pass'); report.write()"
    )
    lanes = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), *half], cwd=ROOT)
        for half in (names[::2], names[1::2])
    ]
    assert [lane.wait(120) for lane in lanes] == [0, 0]
    assert list(json.loads((tmp_path / "r").read_text())) == names
    assert "not yet covered" not in (tmp_path / "p").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p", "r"]


@pytest.mark.parametrize(("variable", "kind"), [("CI", pytest.fail.Exception), (WRITE, pytest.fail.Exception)])
def test_what_is_missing_is_a_failure_where_all_must_be_seen(
    monkeypatch: pytest.MonkeyPatch, variable: str, kind: type[BaseException]
) -> None:
    for name in ("CI", WRITE):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(pytest.skip.Exception):
        absent("no faketime")
    monkeypatch.setenv(variable, "1")
    with pytest.raises(kind):
        absent("no faketime")
