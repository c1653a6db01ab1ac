"""What a user or a CI system reads: golden files, and text of logs that cannot break out of its place."""

import io
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tests.support.expected.golden import assert_golden

from tipcflow.check import CheckContext, judge, verdict
from tipcflow.domain import CheckResult, Facts, Failure, FailureClass, Quirk, Run, Status, Substitution
from tipcflow.report import junit, leg_rows, markdown, step_rows, verdict_rows
from tipcflow.report.tables import checks_table, legs_table, steps_table

GOLDEN = Path(__file__).parents[2] / "golden" / "report"


REPLACED = Substitution(
    what="gpu_list", found="192.168.0.1,192.168.0.2;0,1", used="10.0.0.1,10.0.0.2;0", because="the cluster's nodes"
)
QUIRK = Quirk(id="clas_two_epochs", line=7, bash="trains 2 epochs in every mode", spec="trains 5")


def good(build: ModuleType) -> Facts:
    return build.facts(plan=build.plan(substitutions=(REPLACED,), quirks=(QUIRK,)))


def bad(build: ModuleType) -> Facts:
    leg = f"{build.INFER}/{build.ON}"
    return build.facts(
        step_status={
            "prepare": Status.PASS,
            build.TRAIN: Status.PASS,
            build.EVAL: Status.INFRA_FAILURE,
            build.EXPORT: Status.FAILED,
            build.INFER: Status.BLOCKED,
            build.GPU: Status.NOT_RUN,
        },
        leg_status={leg: Status.FAILED, f"{build.GPU}/gpu_bs1": Status.NOT_RUN},
        step_reason={
            build.EXPORT: "ended with 1: \x1b[31mValueError\x1b[0m: <b>| `x` @team\x00",
            leg: "ended with signal 11",
            build.EVAL: "node alpha does not respond",
        },
        failures={
            build.EVAL: Failure(failure_class=FailureClass.NODE_LOST, node="alpha"),
            build.EXPORT: Failure(
                failure_class=FailureClass.CODE_ERROR,
                node="alpha",
                rank=0,
                log_line="ValueError: <b>| `x` @team\x00",
            ),
        },
    )


def judged(facts: Facts, build: ModuleType) -> tuple[Run, tuple[CheckResult, ...]]:
    results = judge(facts, CheckContext(run=build.run()))
    status, reason = verdict(facts, results)
    return build.run(status=status, reason=reason), results


def check(name: str, text: str) -> None:
    assert_golden(GOLDEN / name, text)


@pytest.mark.parametrize(("name", "facts"), [("good", good), ("bad", bad)])
def test_markdown_equals_golden_files(build: ModuleType, name: str, facts: object) -> None:
    made = facts(build)  # type: ignore[operator]
    check(f"{name}.md", markdown(made, *judged(made, build)))


@pytest.mark.parametrize(("name", "facts"), [("good", good), ("bad", bad)])
def test_junit_report_equals_golden_files(build: ModuleType, name: str, facts: object) -> None:
    made = facts(build)  # type: ignore[operator]
    check(f"{name}.xml", junit(made, *judged(made, build)))


@pytest.mark.parametrize(("name", "facts"), [("good", good), ("bad", bad)])
def test_tables_equal_golden_files(build: ModuleType, name: str, facts: object) -> None:
    made = facts(build)  # type: ignore[operator]
    check(f"{name}_tables.txt", tables(made, judged(made, build)[1]))


def tables(facts: Facts, results: tuple[CheckResult, ...]) -> str:
    out = io.StringIO()
    console = Console(file=out, width=120, force_terminal=False, color_system=None, legacy_windows=False)
    for table in (steps_table(facts), legs_table(facts), checks_table(facts.plan, results)):
        console.print(table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def test_counts_of_junit_equal_its_cases(build: ModuleType) -> None:
    root = ElementTree.fromstring(junit(bad(build), *judged(bad(build), build)))
    assert int(root.get("tests", "")) == len(root.findall(".//testcase"))
    for attribute, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(root.get(attribute, "")) == len(root.findall(f".//{element}")) > 0
    assert {skipped.get("type") for skipped in root.findall(".//skipped")} == {
        "not_run",
        "blocked",
        "insufficient_data",
    }


def test_a_run_that_did_nothing_has_no_green_report(build: ModuleType) -> None:
    facts = build.facts(plan=build.plan(steps=()), step_status={}, leg_status={})
    root = ElementTree.fromstring(junit(facts, build.run(), ()))
    assert root.get("failures") == "1"


@pytest.mark.parametrize(
    ("neutral", "found", "title"),
    [
        (False, {"failures": "2", "skipped": "0"}, "## unconfirmed: "),
        (True, {"failures": "0", "skipped": "2"}, "## unconfirmed (neutral: it does not block): "),
    ],
)
def test_an_unconfirmed_result_is_a_failure_unless_the_policy_sets_neutral(
    build: ModuleType, neutral: bool, found: dict[str, str], title: str
) -> None:
    doubt = CheckResult(check="speed.ips", status=Status.UNCONFIRMED, reason="70 of 100")
    run = build.run(status=Status.UNCONFIRMED, reason="speed.ips: 70 of 100")
    facts = build.facts(plan=build.plan(steps=()), step_status={}, leg_status={})
    root = ElementTree.fromstring(junit(facts, run, (doubt,), neutral=neutral))
    assert {name: root.get(name) for name in found} == found
    assert "unconfirmed: 70 of 100" in ElementTree.tostring(root, encoding="unicode")
    assert markdown(facts, run, (doubt,), neutral=neutral).startswith(title)


def test_a_check_that_does_not_count_is_not_a_failure(build: ModuleType) -> None:
    shown = CheckResult(check="speed.ips", status=Status.REGRESSION, reason="70 of 100", gating=False)
    root = ElementTree.fromstring(junit(build.facts(), build.run(status=Status.PASS), (shown,)))
    assert root.get("failures") == "0"
    assert "regression: 70 of 100" in ElementTree.tostring(root, encoding="unicode")
    (row,) = verdict_rows([shown])
    assert not row.gating


def test_rows_are_sorted_worst_first_and_grouped() -> None:
    alike = [
        CheckResult(check="speed.x", status=Status.INSUFFICIENT_DATA, reason=f"{n} runs", step="s", leg=str(n))
        for n in range(9)
    ]
    results = [
        CheckResult(check="ran.steps", status=Status.PASS, reason="ok"),
*alike,
        CheckResult(check="speed.y", status=Status.REGRESSION, reason="slower", step="s", leg="1"),
        CheckResult(check="speed.y", status=Status.REGRESSION, reason="slower", step="s", leg="2"),
        CheckResult(check="loss.finite", status=Status.FAILED, reason="nan"),
        CheckResult(check="speed.z", status=Status.FAILED, reason="shown only", gating=False),
    ]  # fmt: skip
    rows = verdict_rows(results)
    assert [(row.check, row.count) for row in rows] == [
        ("loss.finite", 1), ("speed.y", 1), ("speed.y", 1), ("speed.x", 9), ("ran.steps", 1), ("speed.z", 1),
    ]  # fmt: skip
    assert (rows[3].about, rows[3].reason) == ("9 steps and legs", "first (0): 0 runs")
    assert sum(row.count for row in rows) == len(results), "nothing is lost"
    metrics = [result.model_copy(update={"leg": "1", "metric": f"m{n}"}) for n, result in enumerate(alike)]
    assert [row.about for row in verdict_rows(metrics)] == ["s 1"]


def test_every_planned_step_and_leg_has_a_row(build: ModuleType) -> None:
    empty = build.facts(step_status={}, leg_status={}, step_reason={}, records=(), measurements=())
    assert [(row.step, row.status.value) for row in step_rows(empty)] == [
        ("prepare", "blocked"), ("v/train", "blocked"), ("v/eval", "blocked"), ("v/export", "blocked"),
        ("v/infer_cpu", "blocked"), ("v/infer_gpu", "not_run"),
    ]  # fmt: skip
    assert [(row.status.value, row.reason) for row in leg_rows(empty)] == [
        ("blocked", ""), ("blocked", ""), ("not_run", "no node has a GPU"),
    ]  # fmt: skip


HOSTILE = st.text(st.characters(codec=None), max_size=40)


@pytest.mark.slow
@given(HOSTILE)
def test_no_text_breaks_out(build: ModuleType, text: str) -> None:
    facts = build.facts(step_reason={build.TRAIN: text}, step_status={build.TRAIN: Status.FAILED})
    results = (CheckResult(check="c", status=Status.FAILED, reason=text),)
    run = build.run(status=Status.FAILED, reason=text)
    xml = junit(facts, run, results)
    root = ElementTree.fromstring(xml.encode("utf-8"))
    assert len(root.findall(".//testcase")) == 11
    page = markdown(facts, run, results)
    still = (CheckResult(check="c", status=Status.FAILED, reason="x"),)
    calm = build.facts(step_reason={build.TRAIN: "x"}, step_status={build.TRAIN: Status.FAILED})
    plain = markdown(calm, run.model_copy(update={"reason": "x"}), still)
    assert abs(len(page.splitlines()) - len(plain.splitlines())) <= 2, "a cell stays on its line"
    assert "<" not in page.replace("&lt;", "")
    assert "\x1b" not in tables(facts, results)
