"""The history of a chain, from a real database; baseline and limits are those of the other commands."""

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import event
from tests.support.precedents import TOP1, put_run, weeks
from tests.support.stories import T0, TRAIN, a_run, losses, open_store

from tipcflow.check.baseline.detector_limits import gate_limits, metric_limits
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.config.run_documents import PolicyDocument
from tipcflow.domain import CheckResult, ConfigError, MetricKey, Status
from tipcflow.domain.numbers.metric_groups import Group
from tipcflow.execute.chain.load import chain_history
from tipcflow.execute.comparison.load import accepted_history
from tipcflow.execute.verdict.check_context import build_check_context
from tipcflow.execute.verdict.judge import load_policy
from tipcflow.report.chain.history import ChainHistory, MetricHistory
from tipcflow.store import Baseline, Store

CONFIGS = Path(__file__).parents[4] / "configs"
CHAIN = "sample/mobilenet_v3_small/train_infer_python"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "t.db") as opened:
        yield opened


def history(store: Store, **more: object) -> ChainHistory:
    return chain_history(store, CHAIN, config_dir=CONFIGS, **more)  # type: ignore[arg-type]


def row_of(made: ChainHistory, name: str, leg: str = "") -> MetricHistory:
    (row,) = [row for row in made.metrics if (row.metric, row.leg) == (name, leg)]
    return row


def test_every_group_has_main_metrics(store: Store) -> None:
    weeks(store, 12)
    made = history(store)
    main = [(row.group, row.leg, row.metric) for row in made.metrics if row.is_main]
    assert [row[0] for row in main] == sorted((row[0] for row in main), key=list(Group).index)
    assert set(main) == {
        (Group.SPEED, "", "batch_cost"),
        (Group.LATENCY, "cpu_onednn_off", "inference_time"),
        (Group.LATENCY, "cpu_onednn_on", "inference_time"),
        (Group.ACCURACY, "", "eval.top1"),
        (Group.MEMORY, "", "peak_rss.rank0"),
    }
    assert {len(row.values) for row in made.metrics} == {12}


def test_limits_equal_the_limits_of_gate(store: Store) -> None:
    runs = weeks(store, 12)
    rules = Policy(name="p").model_copy(update={"z": 3.0})
    store.documents.put(runs[-1].id, PolicyDocument(rules))
    made = history(store)
    gate = gate_limits(accepted_history(store, runs[-1], rules), rules, within_s=0.0)
    assert made.policy == "p"
    for known in gate:
        row = row_of(made, known["metric"], known["leg"])
        assert (row.runs, row.smallest) == (known["runs"], known["smallest"])
    assert row_of(made, "batch_cost").smallest is not None


def test_the_worst_metric_is_first_of_its_group(store: Store) -> None:
    weeks(store, 12)
    put_run(store, 12, status=Status.REGRESSION, slower=1.7)
    made = history(store)
    assert (made.metrics[0].metric, made.metrics[0].verdict) == ("batch_cost", "worse")
    assert made.metrics[0].change == pytest.approx(0.7, abs=0.03)
    assert made.metrics[0].base == pytest.approx(0.2, rel=0.02), "the regression does not join the baseline"


def test_level_begins_at_the_change(store: Store) -> None:
    for week in range(10):
        put_run(store, week)
    for week in range(10, 20):
        put_run(store, week, slower=0.4)
    row = row_of(history(store), "batch_cost")
    assert row.since == "run-10"
    assert (row.runs, row.base) == (10, pytest.approx(0.08, rel=0.02))


def test_confirm_values_count_as_in_the_check(store: Store) -> None:
    weeks(store, 12)
    key = MetricKey(TRAIN, "", "batch_cost")
    for week, status in ((12, Status.PASS), (13, Status.UNCONFIRMED), (14, Status.PASS)):
        run = put_run(store, week, slower=0.208, status=status)
        store.history.cache_numbers(run.id, store.history.facts(run.id).measurements, {key: (0.208,)})
    row = row_of(history(store), "batch_cost")
    rules = load_policy("pr", CONFIGS)
    known = {"environment": run.environment, "framework": run.framework, "mode": run.mode}
    context = build_check_context(
        store, a_run("next", created_at=T0 + 10**8, **known), rules=rules, references=References(suite="s")
    )
    checked = metric_limits(context.observed(key), key.metric, rules)
    assert (row.base, row.runs, row.limit) == (checked.base, len(checked.level.runs), checked.limit)
    alone = metric_limits(context.past(key), key.metric, rules)
    assert (alone.base, len(alone.level.runs)) != (row.base, row.runs), "the values count"


def test_short_history_has_no_limit(store: Store) -> None:
    weeks(store, 3)
    row = row_of(history(store), "batch_cost")
    assert (row.smallest, row.limit, row.verdict, row.runs) == (None, None, "limit unknown", 3)


def test_decisions_and_targets_are_loaded(store: Store) -> None:
    weeks(store, 9)
    known = {"chain": CHAIN, "mode": "lite_train_lite_infer", "step": TRAIN, "metric": "batch_cost"}
    known |= {"environment": store.runs.get("run-00").environment, "unit": "s", "who": "mei", "why": "new kernel"}
    for value, pinned, run in ((0.2, False, "run-03"), (0.19, True, "run-04"), (math.nan, False, "run-05")):
        store.baselines.accept_one(Baseline(**known, value=value, pinned=pinned, run=run, accepted_at=T0))
    store.baselines.accept_one(Baseline(**known, value=0.21, pinned=True, run="run-06", accepted_at=T0 + 1))
    printed = row_of(history(store), "eval.top1").last
    assert printed
    target = {"target": 70.0, "tolerance": 0.5, "unit": "%", "value": 100 * printed}
    result = CheckResult(
        check="accuracy.final", status=Status.PASS, reason="", step=TRAIN, metric="top1", values=target
    )
    store.checks.replace("run-08", [result])
    made = history(store)
    row = row_of(made, "batch_cost")
    assert [(item.kind, item.run) for item in row.decisions] == [
        ("accepted", "run-03"),
        ("pinned", "run-04"),
        ("reset", "run-05"),
        ("pinned", "run-06"),
    ]
    assert row.pinned == 0.21
    accuracy = row_of(made, "eval.top1").target
    assert accuracy is not None
    assert (accuracy.value, accuracy.tolerance) == (pytest.approx(0.7), pytest.approx(0.005))
    assert accuracy.value < TOP1


def test_modes_and_environments_are_apart(store: Store) -> None:
    weeks(store, 3)
    put_run(store, 3, environment="gpu/8x/2-nodes", slower=0.1)
    made = history(store)
    assert [run.id for run in made.runs] == ["run-03"]
    assert [group[1:] for group in made.groups] == [
        ("gpu/8x/2-nodes", "spec", 1),
        ("cpu/some-cpu/2-nodes/4-ranks", "spec", 3),
    ]
    assert len(history(store, environment="cpu/some-cpu/2-nodes/4-ranks").runs) == 3
    assert len(history(store, environment="cpu/some-cpu/2-nodes/4-ranks", last=2).runs) == 2


@pytest.mark.parametrize(
    ("chain", "more", "message"),
    [
        ("nothing", {}, "no run of a chain with this name; found 'nothing'"),
        (CHAIN, {"mode": "whole_infer"}, "expected lite_train_lite_infer, cpu/some-cpu/2-nodes/4-ranks, spec"),
        (CHAIN, {"environment": ""}, "no run of the chain in this mode and environment class"),
    ],
)
def test_chain_without_history_is_an_error(store: Store, chain: str, more: dict[str, str], message: str) -> None:
    weeks(store, 1)
    with pytest.raises(ConfigError, match=message.replace("(", "\\(")):
        chain_history(store, chain, config_dir=CONFIGS, **more)  # type: ignore[arg-type]


def test_no_query_reads_samples(store: Store) -> None:
    runs = weeks(store, 9)
    store.measurements.add(losses(runs[0].id, [1.0] * 500, metric="batch_cost", rank=3))
    statements: list[str] = []
    event.listen(store.database.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    few = history(store, last=3)
    first = len(statements)
    history(store, last=9)
    assert not [text for text in statements if "samples" in text.split("FROM")[0]]
    assert len(statements) == 2 * first, "the number of queries does not depend on the number of runs"
    assert len(few.runs) == 3
