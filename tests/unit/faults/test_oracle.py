"""The injector's oracle: which ends of a case are right."""

from pathlib import Path

import pytest
from tests.faults import page
from tests.faults.catalogue import FAULTS, draw
from tests.faults.fault import AIRFLOW, FAILED, INFRA, Fault
from tests.faults.oracle import Seen, wrong
from tests.faults.world import doubled_or_lost

MODEL = Fault("m", "", FAILED)
NODE = Fault("n", "", INFRA, healed=True)


@pytest.mark.parametrize(
    ("fault", "seen", "kinds"),
    [
        (MODEL, Seen("failed", reason="node b, rank 3", code=1), set()),
        (MODEL, Seen("pass", complete=True, code=0), {"false pass"}),
        (NODE, Seen("pass", complete=True, code=0), set()),
        (NODE, Seen("pass", complete=False, code=0), {"false pass"}),
        (NODE, Seen("failed", reason="node b", code=1), {"wrong verdict"}),
        (NODE, Seen("infra_failure", reason="node b was lost", code=2), set()),
        (NODE, Seen("infra_failure", reason="a node was lost", code=2), {"node not named"}),
        (NODE, Seen("infra_failure", reason="node b", code=1), {"exit code"}),
        (NODE, Seen("infra_failure", reason="node b", code=2, left=["b: sleep"]), {"left behind"}),
        (NODE, Seen("infra_failure", reason="node b", code=2, traceback=True), {"traceback"}),
        (NODE, Seen("stuck"), {"wrong verdict"}),
        (NODE, Seen("pass", complete=True, code=0, second="failed"), {"next run"}),
    ],
)
def test_an_end_is_right_or_names_its_defect(fault: Fault, seen: Seen, kinds: set[str]) -> None:
    assert set(wrong((fault,), "b", seen)) == kinds


def test_two_faults_of_nodes_are_not_the_models() -> None:
    seen = Seen("failed", reason="node b", code=1)
    assert set(wrong((NODE, NODE), "b", seen)) == {"wrong verdict"}
    assert wrong((NODE, MODEL), "b", seen) == {}


def test_losses_are_counted_once() -> None:
    printed = {(1, 0): [1.0, 2.0], (2, 0): [1.0, 2.0, 3.0]}
    assert doubled_or_lost(printed, {(2, 0): [1.0, 2.0, 3.0]}, passed=True) == []
    assert doubled_or_lost(printed, {(2, 0): [1.0, 2.0, 1.0, 2.0, 3.0]}, passed=True)
    assert doubled_or_lost(printed, {(2, 0): [1.0, 2.0]}, passed=True)
    assert doubled_or_lost(printed, {(1, 0): [1.0, 2.0, 3.0]}, passed=False) == [], "the last line may race"
    assert doubled_or_lost({(1, 0): [float("nan")]}, {(1, 0): [float("nan")]}, passed=False) == []


def test_a_draw_is_the_same_for_the_same_seed_and_covers_every_fault() -> None:
    count = sum("cli" in fault.doors for fault in FAULTS)
    first = [draw(number, 7, "cli") for number in range(count)]
    assert first == [draw(number, 7, "cli") for number in range(count)]
    assert {one.faults[0].name for one in first} == {fault.name for fault in FAULTS if "cli" in fault.doors}
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_faults_of_airflow_are_drawn_for_airflow_only_and_every_fault_has_a_door() -> None:
    airflow = {fault.name for fault in FAULTS if fault.doors == AIRFLOW}
    count = sum("airflow" in fault.doors for fault in FAULTS)
    drawn = {draw(number, 7, "airflow").faults[0].name for number in range(count)}
    assert airflow <= drawn
    assert {"marked failed", "task cleared", "queued run deleted", "KILL scheduler"} <= airflow
    assert all(fault.doors for fault in FAULTS)


def test_a_share_of_the_cases_has_real_paddle() -> None:
    drawn = [draw(number, 7, "cli", paddle=1 / 3) for number in range(300)]
    real = [one for one in drawn if one.paddle]
    assert 70 < len(real) < 130
    assert all(fault.paddle for one in real for fault in one.faults)
    assert not any(draw(number, 7, "cli").paddle for number in range(50))


def test_the_page_has_a_table_for_each_door_and_for_paddle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "RESULTS", tmp_path / "seen.json")
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    rows = [
        {"number": 1, "name": "hang", "seen": {"status": "failed"}, "wrong": {}, "paddle": False},
        {"number": 2, "name": "nan + hang, Paddle", "seen": {"status": "pass"}, "wrong": {"false pass": "x"}},
    ]
    rows[1]["paddle"] = True
    page.write(rows, 3, "airflow")
    page.write(rows[:1], 4, "cli")
    text = (tmp_path / "page.md").read_text()
    titles = [line for line in text.splitlines() if line.startswith("## ")]
    assert titles == ["## `tipcflow run`", "## Airflow", "## Airflow, real Paddle"]
    assert "| nan | 1 | 1 `pass` | case 2: false pass: x |" in text
