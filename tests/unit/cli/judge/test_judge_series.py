"""`tipcflow judge --series`: each run of a series gets the result that the checks of that run would give."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tipcflow.check import CheckContext, Confirmation
from tipcflow.check.baseline.comparison import BaselineComparison, Confirm
from tipcflow.config.loader import load_yaml
from tipcflow.config.policy import Policy

POLICIES = Path(__file__).parents[4] / "configs" / "policies"
LEVEL = [1.0, 1.01, 0.99, 1.005, 0.995]


def line(values: list[Any], name: str = "s", **more: Any) -> str:
    """A value, or (value, confirm value), per run; None is a run without samples."""
    points = []
    for at, one in enumerate(values):
        value, confirm = one if isinstance(one, tuple) else (one, None)
        points.append(
            {"run": f"r{at}", "node": "n", "samples": [] if value is None else [value] * 3}
            | ({} if confirm is None else {"confirm": [confirm]})
        )
    return json.dumps({"id": name, "unit": "s", "direction": "lower", "points": points, **more})


@pytest.fixture
def judge(tmp_path: Path, tipcflow: Callable[..., Any], home: Any) -> Callable[..., Any]:
    def run(*lines: str, policy: str = "weekly", metric: str = "batch_cost", as_json: bool = True) -> Any:
        path = tmp_path / "s.jsonl"
        path.write_text("\n".join(lines) + "\n")
        more = ["--json"] if as_json else []
        return tipcflow("judge", "--series", str(path), "--policy", policy, "--metric", metric, *more)

    return run


def points(result: Any) -> list[dict[str, Any]]:
    assert result.code == 0, result.err
    (found,) = [json.loads(one) for one in result.out.splitlines()]
    return found["points"]


def statuses(result: Any) -> list[str]:
    return [one["status"] for one in points(result)]


def test_a_change_is_unconfirmed_until_its_confirm_run(judge: Callable[..., Any]) -> None:
    found = points(judge(line([*LEVEL, 1.08, (1.08, 1.079), (1.08, 1.0), (1.08, 1.045), 1.2])))
    assert [one["index"] for one in found] == list(range(10))
    assert [one["status"] for one in found[:5]] == ["insufficient_data"] * 5
    assert [one["status"] for one in found[5:]] == [
        "unconfirmed",
        "regression",
        "pass",
        "unconfirmed",
        "regression",
    ]
    assert found[0]["ratio"] is None
    assert found[6]["ratio"] == pytest.approx(1.08, rel=0.01)
    assert found[5]["reason"].endswith("not confirmed: the confirm run measured nothing")
    assert found[6]["reason"].endswith(
        "the confirm run measured 1.079 s (only 1 of 3: the series has no further one)"
    )
    assert "1.08 s" in found[5]["reason"]


def test_runs_that_were_not_accepted_join_no_history(judge: Callable[..., Any]) -> None:
    """Slow runs without a confirm run stay unconfirmed however many they are."""
    assert statuses(judge(line([*LEVEL * 4, *[1.08] * 12])))[20:] == ["unconfirmed"] * 12
    assert statuses(judge(line([*LEVEL * 4, *[1.2] * 12])))[20:] == ["regression"] * 12


@pytest.mark.parametrize(("policy", "window"), [("pr", 20), ("weekly", 52)])
def test_the_window_is_that_of_the_policy(judge: Callable[..., Any], policy: str, window: int) -> None:
    """The baseline has `history` runs, and no older one."""
    found = points(judge(line([1.0] * 70), policy=policy))
    assert f"of {window} runs" in found[-1]["reason"]


@pytest.mark.parametrize(
    ("policy", "metric", "change", "status"),
    [
        ("pr", "batch_cost", 0.45, "pass"),
        ("pr", "batch_cost", 0.55, "unconfirmed"),
        ("pr", "peak_rss", 0.15, "pass"),
        ("pr", "peak_rss", 0.25, "unconfirmed"),
        ("weekly", "batch_cost", 0.04, "pass"),
        ("weekly", "batch_cost", 0.06, "unconfirmed"),
        ("weekly", "ips", 0.06, "unconfirmed"),
        # A deterministic loss that moved has moved: no confirm run is needed.
        ("weekly", "loss", 0.015, "pass"),
        ("weekly", "loss", 0.03, "regression"),
        ("weekly", "top1", 0.03, "regression"),
    ],
)
def test_exact_ties_are_judged_by_the_floors_of_the_policy(
    judge: Callable[..., Any], policy: str, metric: str, change: float, status: str
) -> None:
    for before in (6, 12, 30):
        answer = statuses(judge(line([1.7] * before + [1.7 * (1 + change)]), policy=policy, metric=metric))[-1]
        assert answer == status


def test_the_series_sets_which_direction_is_better(judge: Callable[..., Any]) -> None:
    assert statuses(judge(line([*LEVEL, 0.9], direction="higher"), metric="ips"))[-1] == "unconfirmed"
    assert statuses(judge(line([*LEVEL, 1.2], direction="higher"), metric="ips"))[-1] == "improvement"


def test_values_other_than_measurements(judge: Callable[..., Any]) -> None:
    found = points(judge(line([*LEVEL, 0.0, None, 1.0])))
    assert [one["status"] for one in found[5:]] == ["failed", "not_run", "pass"]
    assert found[6]["reason"] == "the run has no samples"


def test_judge_prints_a_line_per_series_or_a_table(judge: Callable[..., Any]) -> None:
    result = judge(line(LEVEL, "a"), line([*LEVEL, 1.2], "b"), line([], "c"))
    assert [json.loads(one)["id"] for one in result.out.splitlines()] == ["a", "b", "c"]
    table = judge(line(LEVEL, "a"), line([*LEVEL, 1.2], "b"), as_json=False).out
    assert "5 insufficient_data" in table
    assert "r5" in table
    assert "regression" in table


def test_results_equal_the_results_of_the_checks(judge: Callable[..., Any]) -> None:
    """The same values as history and value of a run, evaluated one by one."""
    policy = load_yaml(POLICIES / "weekly.yaml", Policy)
    rule = policy.rule_of("batch_cost")
    assert rule
    values = [1 + 0.01 * ((at * 7) % 5 - 2) for at in range(60)]
    values[30], values[45] = 1.3, 1.08
    found = points(judge(line([(one, 1.0) for one in values])))
    accepted: list[float] = []
    for point, value in zip(found, values, strict=True):
        context = CheckContext(policy=policy, confirmation=Confirmation(run="c", medians={}))
        past = accepted[-context.policy.history :]
        question = BaselineComparison("batch_cost", value, past, rule, policy, Confirm())
        answer = question.judge()
        if question.values.get("confirm"):
            answer = BaselineComparison("batch_cost", value, past, rule, policy, Confirm(1.0)).judge()
        assert (point["status"], point["reason"]) == (answer[0].value, answer[1])
        if point["status"] in ("pass", "improvement", "insufficient_data"):
            accepted.append(value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "RUN, --since or --series: exactly one of these is required"),
        (["run-1", "--since", "2026-11-21"], "exactly one of these is required"),
        (["--series", "FILE", "--policy", "pr"], "--metric: is missing"),
        (["--series", "FILE", "--metric", "loss"], "--policy: is missing"),
        (["--series", "FILE", "--policy", "nosuch", "--metric", "loss"], "nosuch"),
        (
            ["--series", "FILE", "--policy", "pr", "--metric", "lr"],
            "--metric: policy pr does not evaluate",
        ),
        (["--series", "none.jsonl", "--policy", "pr", "--metric", "loss"], "cannot be read"),
        (
            ["--series", "BAD", "--policy", "pr", "--metric", "loss"],
            "2: points[1].samples[0]: is not a JSON number",
        ),
        (["run-1", "--metric", "loss"], "--metric: is valid only with --series"),
        (["--since", "yesterday"], "--since: is not a date; found 'yesterday'"),
    ],
)
def test_wrong_input_is_one_error(
    tmp_path: Path, tipcflow: Callable[..., Any], database: Any, words: list[str], message: str
) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text(line(LEVEL) + "\n")
    bad.write_text(line(LEVEL) + "\n" + line([1.0, "x"]) + "\n")
    files = {"FILE": str(good), "BAD": str(bad)}
    result = tipcflow("judge", *(files.get(word, word) for word in words))
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert len([line for line in result.err.splitlines() if not line.startswith("  ")]) == 1


@pytest.mark.process
@pytest.mark.process
def test_judge_series_runs_as_a_process(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(line([*LEVEL, 1.2]) + "\n")
    command = [str(Path(sys.executable).with_name("tipcflow")), "judge", "--series", str(path), "--json"]
    done = subprocess.run(
        [*command, "--policy", "weekly", "--metric", "batch_cost"], capture_output=True, text=True
    )
    assert json.loads(done.stdout)["points"][5]["status"] == "regression"


def test_csv_has_a_row_per_point(judge: Callable[..., Any], tmp_path: Path, tipcflow: Callable[..., Any]) -> None:
    expected = points(judge(line([*LEVEL, 1.08])))
    words = ("judge", "--series", str(tmp_path / "s.jsonl"), "--policy", "weekly", "--metric", "batch_cost")
    rows = list(csv.DictReader(tipcflow(*words, "--csv").out.splitlines()))
    assert [(row["series"], int(row["index"]), row["run"], row["status"], row["reason"]) for row in rows] == [
        ("s", point["index"], f"r{point['index']}", point["status"], point["reason"]) for point in expected
    ]
    both = tipcflow(*words, "--csv", "--json")
    assert (both.code, both.out) == (2, "")
