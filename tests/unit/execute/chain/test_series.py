"""Lines of metrics over runs, from a real database."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import event
from tests.support.precedents import put_run, weeks
from tests.support.stories import TRAIN, open_store

from tipcflow.domain import ConfigError, Run, Status
from tipcflow.execute.chain.series import load_series, parse_lines, siblings_of
from tipcflow.report.canonical import plain
from tipcflow.report.chain.series import LineKey, series_csv
from tipcflow.store import Store

LEG = "norm_train_cpu/infer_cpu"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "t.db") as opened:
        yield opened


def a_key(run: Run, metric: str = "batch_cost", step: str = TRAIN, leg: str = "") -> LineKey:
    return LineKey(run.chain, run.mode, run.environment, run.compat, step, leg, metric)


def test_values_equal_the_page_and_are_relative_to_the_first_runs(store: Store) -> None:
    runs = weeks(store, 12)
    put_run(store, 12, status=Status.REGRESSION, slower=1.7)
    key = a_key(runs[-1])
    (line,) = load_series(store, [key]).lines
    exact = store.numbers.of([run.id for run in runs])
    assert [point.value for point in line.points[:-1]] == [exact[run.id].values[key.key] for run in runs]
    assert line.reference is not None
    assert line.last is not None
    assert line.last.status is Status.REGRESSION
    assert line.last.percent == pytest.approx(170, abs=5)
    assert LineKey.parse(line.text) == key
    assert [len(made.points) for made in load_series(store, [key], last=5).lines] == [5]
    at = runs[3].created_at
    (some,) = load_series(store, [key], since=at, until=runs[5].created_at).lines
    assert [point.run for point in some.points] == [run.id for run in runs[3:6]]
    rows = list(csv.DictReader(io.StringIO(series_csv(load_series(store, [key])))))
    assert [row["run"] for row in rows] == [point.run for point in line.points]


def test_lines_of_different_units_are_relative(store: Store) -> None:
    runs = weeks(store, 3)
    speed, latency = a_key(runs[-1]), a_key(runs[-1], "inference_time", LEG, "cpu_onednn_on")
    assert not load_series(store, [speed]).relative
    both = load_series(store, [speed, latency])
    assert both.relative
    assert [line.name for line in both.lines] == ["batch_cost train", "inference_time cpu_onednn_on"]
    assert plain(both)["lines"][1]["name"] == "inference_time cpu_onednn_on"


def test_siblings_are_the_other_metrics_and_the_other_groups(store: Store) -> None:
    runs = weeks(store, 3)
    put_run(store, 3, mode="whole_train_whole_infer")
    others, metrics = siblings_of(store, a_key(runs[-1]))
    assert [other.mode for other in others] == ["whole_train_whole_infer"]
    assert ("eval.top1", "") in {(other.metric, other.leg) for other in metrics}
    assert a_key(runs[-1]) not in metrics


def test_a_chain_that_does_not_exist_is_an_empty_line(store: Store) -> None:
    (line,) = load_series(store, [LineKey("no", "m", "e", "spec", "s", "", "ips")]).lines
    assert (line.points, line.reference, line.last) == ((), None, None)


def test_wrong_lines_are_refused() -> None:
    with pytest.raises(ConfigError, match="does not name a line"):
        parse_lines(["chain|mode"])
    many = [f"c{number}|m|e|spec|s||ips" for number in range(9)]
    with pytest.raises(ConfigError, match="too many lines"):
        parse_lines(many)
    assert len(parse_lines([*many[:8], many[0], ""])) == 8


def test_queries_do_not_read_samples(store: Store) -> None:
    runs = weeks(store, 6)
    sent: list[str] = []
    event.listen(store.database.engine, "before_cursor_execute", lambda *call: sent.append(call[2]))
    load_series(store, [a_key(runs[-1])])
    assert sent
    assert not [statement for statement in sent if "samples" in statement]
