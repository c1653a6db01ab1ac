"""An A/B comparison as text and as JSON."""

import math
from pathlib import Path
from typing import Any

from tests.support.stories import T0, a_run

from tipcflow.ab import outcome_of, ratio_of
from tipcflow.cli.output.output import columns
from tipcflow.domain import MetricKey, Run, exit_code
from tipcflow.execute.ab.comparison import Side
from tipcflow.execute.ab.metrics import better_of
from tipcflow.execute.ab.progress import Compared, Limits, Pair, Progress
from tipcflow.execute.ab.text import opening, pair_line, result_json, result_lines
from tipcflow.execute.request import RunRequest

REQUEST = RunRequest("f.txt", "toy", "mode", "local", Path("configs"))
A, B = Side("A", "v1 (11111111)", REQUEST), Side("B", "main (22222222)", REQUEST)
TRAIN = MetricKey("norm_train/train", "", "batch_cost")
LEG = MetricKey("norm_train/infer_cpu", "cpu_fp32", "inference_time")


def result(progress: Progress) -> list[str]:
    return result_lines(Limits(), progress, lambda headers, rows: columns(headers, rows, width=None))


def a_pair(number: int) -> Pair:
    def run(side: str) -> Run:
        return a_run(f"run-{number}{side}").model_copy(update={"created_at": T0, "ended_at": T0 + 30})

    return Pair(number, "A" if number % 2 == 0 else "B", run("a"), run("b"))


def compared(key: MetricKey, *values: tuple[float, float]) -> Compared:
    ratio = ratio_of(values, 0.02)
    return Compared(key, values, ratio, outcome_of(ratio, better_of(key), 0.02))


def progress(*each: Compared, why: str = "", count: int = 4, **more: Any) -> Progress:
    return Progress(tuple(a_pair(number) for number in range(count + 1)), each, why=why, **more)


SLOWER = compared(TRAIN, (1.0, 1.1), (1.0, 1.102), (1.0, 1.1), (1.0, 1.101), (1.0, 1.1), (1.0, 1.1))
SAME = compared(LEG, *[(5.0, 5.0)] * 6)
NOISY = compared(LEG, (5.0, 5.5), (5.0, 4.6), (5.0, 5.1), (5.0, 4.9))


def test_opening_names_both_sides_and_the_limits() -> None:
    assert opening(A, B, Limits()) == (
        "toy f.txt: at most 20 pairs after 1 warm-up, margin 2.0 %, error 2.0 %\n"
        "A: v1 (11111111)\nB: main (22222222)"
    )
    assert "toy f.txt: 8 pairs, margin 5.0 %" in opening(A, B, Limits(pairs=8, warm_ups=0, margin=0.05))


def test_every_pair_has_a_line() -> None:
    assert pair_line(progress(count=0)) == "warm-up pair (A, B): 1:00; not counted, caches were cold"
    few = compared(TRAIN, (1.0, 1.1))
    assert pair_line(progress(few, count=1)) == (
        "pair 1 (B, A): 1:00; 1 of 1 metrics undecided: train batch_cost 1.100 x"
    )
    assert pair_line(progress(SLOWER, SAME, count=6)).startswith(
        "pair 6 (A, B): 1:00; 0 of 2 metrics undecided: train batch_cost 1.100 x (1.09"
    )
    assert pair_line(Progress((), why="stopped by a user")) == "no pair has ended: stopped by a user"


def test_the_result_lists_the_worst_metric_first() -> None:
    lines = result(progress(SAME, SLOWER, why="every metric is decided", count=6))
    assert [line.split()[0] for line in lines] == ["METRIC", "train", "infer_cpu", "worse:"]
    assert lines[1].split()[-1] == "worse"
    assert lines[2].split()[-5:] == ["1.0000", "1.0000", "to", "1.0000", "same"]
    assert lines[-1] == "worse: 1 of 2 metrics; every metric is decided (6 pairs and 1 warm-up pair, 7:00)"


def test_undecided_metrics_are_not_hidden_by_decided_ones() -> None:
    lines = result(progress(SAME, NOISY, why="the limit of 4 pairs is reached"))
    assert lines[-1].startswith("undecided: 1 of 2 metrics; the limit of 4 pairs is reached")
    same = result(progress(SAME, why="every metric is decided"))
    assert same[-1].startswith("same within 2.0 %: 1 of 1 metrics; every metric is decided")


def test_a_metric_that_one_side_lacks_leaves_the_result_undecided() -> None:
    lost = progress(SAME, why="every metric is decided", missing=(TRAIN,))
    lines = result(lost)
    assert lines[-2] == "not compared: train batch_cost: a run of A or B did not measure it"
    assert lines[-1].startswith("undecided: 1 of 2 metrics not compared; every metric is decided")
    assert exit_code(lost.status) == 4
    assert exit_code(progress(SAME).status) == 0
    assert exit_code(progress(SLOWER, missing=(LEG,)).status) == 1


def test_failed_side_b_is_worse_and_failed_side_a_undecided() -> None:
    failed = progress(failed="B", why="run run-1b of B is failed: exit code 1", count=0)
    assert result(failed) == ["worse: run run-1b of B is failed: exit code 1 (0 pairs and 1 warm-up pair, 1:00)"]
    failed = progress(failed="A", why="run run-1a of A is failed: exit code 1", count=0)
    assert result(failed)[0].startswith("undecided: run run-1a of A is failed")


def test_a_comparison_is_printed_as_json() -> None:
    data = result_json(A, B, Limits(), progress(SLOWER, why="every metric is decided", count=6))
    assert (data["a"], data["b"], data["decided"]) == ("v1 (11111111)", "main (22222222)", True)
    (metric,) = data["metrics"]
    assert (metric["metric"], metric["outcome"], metric["better"]) == ("batch_cost", "worse", "lower")
    assert metric["low"] < metric["ratio"] < metric["high"]
    assert data["pairs"][0] == {"number": 0, "order": "AB", "a": "run-0a", "b": "run-0b", "seconds": 60.0}
    few = result_json(A, B, Limits(), progress(compared(TRAIN, (1.0, 1.1)), count=1))
    assert math.isinf(few["metrics"][0]["high"])
