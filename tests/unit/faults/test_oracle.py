"""The injector's oracle: which ends of a case are right."""

from pathlib import Path

import pytest
from tests.faults import page
from tests.faults.catalogue import BEFORE_S, FAULTS, draw
from tests.faults.fault import AIRFLOW, CODE_ERROR, FAILED, HANG, INFRA, NO_CLASS, NODE_LOST, NONE, Fault
from tests.faults.losses import doubled_or_lost, on_nodes, out_of_reach
from tests.faults.oracle import UNSAID, UNSTARTED, Seen, wrong

from tipcflow.domain import ExitRecord
from tipcflow.domain.run.attempt import Attempt
from tipcflow.domain.run.failure import REMEDIES, FailureClass

MODEL = Fault("m", "", FAILED, classes=CODE_ERROR | NONE, names_rank=True)
NODE = Fault("n", "", INFRA, healed=True, classes=NODE_LOST)
HUNG = Fault("h", "", FAILED, classes=HANG, names_rank=True)
FULL = Fault("f", "", INFRA | {UNSAID}, names_node=False, classes=NONE, codes=frozenset({5}))
KILL = Fault("k", "", frozenset({UNSAID, UNSTARTED}), names_node=False, classes=NONE, codes=frozenset({-9}))
LOST = {"failure": "node_lost", "root_cause": "node b", "classes": ["node_lost"]}
STILL = {"failure": "hang", "root_cause": "node b, rank 3", "classes": ["hang"]}


@pytest.mark.parametrize(
    ("fault", "seen", "kinds"),
    [
        (MODEL, Seen("failed", reason="node b, rank 3", code=1), set()),
        (MODEL, Seen("pass", complete=True, code=0), {"false pass"}),
        (NODE, Seen("pass", complete=True, code=0), set()),
        (NODE, Seen("pass", complete=False, code=0), {"false pass"}),
        (NODE, Seen("failed", reason="node b", code=1), {"wrong verdict", "wrong class"}),
        (NODE, Seen("infra_failure", code=5, **LOST), set()),
        (
            NODE,
            Seen("infra_failure", reason="node b", code=5, **LOST | {"root_cause": "node a"}),
            {"node not named"},
        ),
        (NODE, Seen("infra_failure", reason="node b", code=5), {"wrong class"}),
        (NODE, Seen("infra_failure", reason="node b could not be listed for leftovers: x", code=5), set()),
        (NODE, Seen("infra_failure", code=5, **LOST | {"classes": ["node_lost", "killed"]}), {"wrong class"}),
        (NODE, Seen("pass", complete=True, code=0, classes=["node_lost"]), set()),
        (NODE, Seen("pass", complete=True, code=0, classes=["hang"]), {"wrong class"}),
        (NODE, Seen("infra_failure", code=5, certified=["train"], **LOST), {"wrong class"}),
        (NODE, Seen("infra_failure", code=1, **LOST), {"exit code"}),
        (NODE, Seen("infra_failure", code=5, left=["b: sleep"], **LOST), {"left behind"}),
        (NODE, Seen("infra_failure", code=5, leaked=["main.log"], **LOST), {"fetched a secret"}),
        (NODE, Seen("infra_failure", code=5, traceback=True, **LOST), {"traceback"}),
        (NODE, Seen("stuck"), {"wrong verdict"}),
        (NODE, Seen("pass", complete=True, code=0, second="failed"), {"next run"}),
        (NODE, Seen("pass", complete=True, code=-9), {"exit code"}),
        (HUNG, Seen("failed", code=1, **STILL), set()),
        (HUNG, Seen("failed", code=1, reason="rank 3", **STILL | {"root_cause": "node b"}), {"rank not named"}),
        (
            HUNG,
            Seen("failed", code=1, reason="rank 3", **STILL | {"root_cause": "node b, rank 2"}),
            {"rank not named"},
        ),
        (HUNG, Seen("failed", code=1, **STILL | {"classes": ["code_error"]}), {"wrong class"}),
        (FULL, Seen("none", code=5, later="infra_failure"), set()),
        (FULL, Seen("none", code=1, later="infra_failure"), {"exit code"}),
        (FULL, Seen("none", code=5, later="none"), {"no status"}),
        (FULL, Seen("none", code=5, later="failed"), {"no status"}),
        (KILL, Seen("not started", code=-9), set()),
        (KILL, Seen("not started", code=1), {"exit code"}),
    ],
)
def test_an_end_is_right_or_names_its_defect(fault: Fault, seen: Seen, kinds: set[str]) -> None:
    assert set(wrong((fault,), "b", seen, rank=3)) == kinds


def test_two_faults_of_nodes_are_not_the_models() -> None:
    seen = Seen("failed", reason="node b", code=1)
    assert set(wrong((NODE, NODE), "b", seen)) == {"wrong verdict", "wrong class"}
    assert wrong((NODE, MODEL), "b", seen) == {}
    assert set(wrong((MODEL, MODEL), "b", Seen("infra_failure", reason="node b", code=5))) == {"wrong verdict"}


def test_every_fault_has_fitting_failure_classes() -> None:
    known = {NO_CLASS, *(one.value for one in FailureClass)}
    for fault in FAULTS:
        assert fault.classes, fault.name
        assert fault.classes <= known, fault.name
        fitting = {REMEDIES[FailureClass(one)].status.value for one in fault.classes - NONE}
        assert fitting <= fault.right | {"infra_failure"}, f"{fault.name}: a class whose status is not right"


def test_losses_are_counted_once() -> None:
    printed = {(1, 0): [1.0, 2.0], (2, 0): [1.0, 2.0, 3.0]}
    first, gone = {(1, 0): [1.0]}, {(1, 0)}
    assert doubled_or_lost(printed, {**first, (2, 0): [1.0, 2.0, 3.0]}, passed=True) == []
    assert doubled_or_lost(printed, {**first, (2, 0): [1.0, 2.0, 1.0, 2.0, 3.0]}, passed=True)
    assert doubled_or_lost(printed, {**first, (2, 0): [1.0, 2.0]}, passed=True)
    assert doubled_or_lost(printed, {(2, 0): [1.0, 2.0, 3.0]}, passed=True), "the first attempt is missing"
    assert doubled_or_lost(printed, {(2, 0): [1.0, 2.0, 3.0]}, passed=True, gone=gone) == []
    assert doubled_or_lost({(1, 0): [float("nan")]}, {(1, 0): [float("nan")]}, passed=False) == []


@pytest.mark.parametrize(
    ("stored", "right"), [(3, False), (4, True), (5, True), (6, True), (7, False), (0, False)]
)
def test_a_rank_that_was_cut_short_may_differ_by_one_line(stored: int, right: bool) -> None:
    losses = [float(n) for n in range(10)]
    printed, kept = {(1, 0): losses[:5]}, {(1, 0): losses[:stored]} if stored else {}
    assert (doubled_or_lost(printed, kept, passed=False) == []) is right
    assert (doubled_or_lost(printed, kept, passed=True) == []) is (stored == 5)


def test_a_rank_that_printed_everything_was_not_cut_short() -> None:
    losses = [float(n) for n in range(10)]
    assert doubled_or_lost({(1, 0): losses}, {(1, 0): losses}, passed=False) == []
    assert doubled_or_lost({(1, 0): losses}, {(1, 0): losses[:9]}, passed=False)


def test_log_is_unreachable_only_if_the_output_reports_a_lost_node() -> None:
    record = ExitRecord(run="r", step="v/train", node="a", attempt=1, started_at=0, ended_at=1, reason="exited")
    tried = Attempt(run="r", step="v/train", attempt=1, nodes=("a", "b"), records=(record,), started_at=0)
    note = "the logs of node b could not be fetched: it does not respond"
    assert out_of_reach([tried], note) == {(1, 2), (1, 3)}
    assert out_of_reach([tried], None) == {(1, 2), (1, 3)}, "Airflow prints it in a task's log"
    assert out_of_reach([tried], "pass") == set()
    assert out_of_reach([tried], note.replace("node b", "node a")) == set()


def test_values_not_fetched_must_be_on_the_nodes(tmp_path: Path) -> None:
    for node in "ab":
        log = tmp_path / node / "runs" / "r" / "src" / "out" / "workerlog.0"
        log.parent.mkdir(parents=True)
        log.write_text("lr: 0.1, loss: 1.50000, x\nlr: 0.1, loss: 1.25000, x\n")
    printed = {(1, 0): [1.5, 1.25], (1, 1): [1.5], (1, 2): [1.5, 2.0], (1, 3): []}
    assert on_nodes({node: tmp_path / node for node in "ab"}, printed) == {(1, 0), (1, 3)}


def test_a_case_without_a_run_is_without_effect_and_not_right() -> None:
    rows = [
        {"seen": {"status": "not started", "struck": True}, "wrong": {}},
        {"seen": {"status": "pass", "struck": False}, "wrong": {}},
        {"seen": {"status": "pass", "struck": True}, "wrong": {}},
        {"seen": {"status": "not started", "struck": True}, "wrong": {"exit code": "1"}},
    ]
    counted = page.classes(rows)
    assert (counted["right"], counted["without effect"], counted["exit code"]) == (1, 2, 1)


def test_a_tenth_of_the_moments_outside_the_training_comes_before_the_run() -> None:
    drawn = [draw(number, 7, "cli") for number in range(1000)]
    assert 60 < sum(one.before for one in drawn) < 140
    assert all(one.delay_s <= BEFORE_S for one in drawn if one.before)
    assert not any(draw(number, 7, "airflow").before for number in range(100))


def test_draws_of_one_seed_are_equal_and_cover_every_fault() -> None:
    count = sum("cli" in fault.doors for fault in FAULTS)
    first = [draw(number, 7, "cli") for number in range(count)]
    assert first == [draw(number, 7, "cli") for number in range(count)]
    assert {one.faults[0].name for one in first} == {fault.name for fault in FAULTS if "cli" in fault.doors}
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_faults_of_airflow_are_drawn_for_airflow_only() -> None:
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
