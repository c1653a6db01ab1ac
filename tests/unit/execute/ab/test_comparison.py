"""The loop with a real database; the runs are stored as an execution would store them."""

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.stories import T0, TRAIN, a_plan, a_run, losses, open_store, record_run

from tipcflow.ab import Outcome
from tipcflow.domain import ConfigError, InfraError, Phase, Run, Status, StepKind
from tipcflow.execute.ab.comparison import Comparison, Side
from tipcflow.execute.ab.metrics import check_names, values_of
from tipcflow.execute.ab.progress import Limits, Progress
from tipcflow.execute.chain.measured import ChainMetrics
from tipcflow.execute.request import RunRequest
from tipcflow.store import Store

pytestmark = pytest.mark.slow

Value = Callable[[str], float | Status]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "t.db") as opened:
        yield opened


def a_side(label: str) -> Side:
    request = RunRequest(
        "params.txt", "toy", "mode", "local", Path("configs"), suite_ref=label.lower(), trigger="ab"
    )
    return Side(label, f"{label.lower()} (12345678)", request)


class Chain:
    """Stores a run for each execution; `value` of a side is its batch_cost, or the status without one."""

    def __init__(self, store: Store, value: Value, metric: str = "batch_cost") -> None:
        self.store, self.value, self.metric = store, value, metric
        self.numbers = itertools.count(1)
        self.order: list[str] = []

    def __call__(self, first: Side, second: Side) -> tuple[Run, Run]:
        return self._run(first), self._run(second)

    def _run(self, side: Side) -> Run:
        number = next(self.numbers)
        self.order.append(side.label)
        run = a_run(f"run-{number}", created_at=T0 + 100 * number, trigger="ab", mode=a_run().mode)
        value = self.value(side.label)
        if isinstance(value, Status):
            self.store.runs.create(run)
            self.store.runs.finish(run.id, value, f"it is {value.value}", run.created_at + 60)
        else:
            run = record_run(self.store, run)
            self.store.measurements.add(losses(run.id, [value], metric=self.metric, unit="s"))
        return self.store.runs.get(run.id)


def compared(store: Store, value: Value, names: tuple[str, ...] = ("batch_cost",), **limits: object) -> Progress:
    comparison = Comparison(
        store,
        a_side("A"),
        a_side("B"),
        names,
        Limits(**limits),
        Chain(store, value),  # type: ignore[arg-type]
    )
    return list(comparison.run())[-1]


def noisy(slower: float, noise: float, seed: int = 1) -> Value:
    source = random.Random(seed)
    return lambda label: (slower if label == "B" else 1.0) * source.gauss(1.0, noise)


def test_a_slower_version_is_worse_after_few_pairs(store: Store) -> None:
    progress = compared(store, noisy(1.1, 0.005))
    assert [each.outcome for each in progress.compared] == [Outcome.WORSE]
    assert progress.is_decided
    assert progress.why == "every metric is decided"
    assert progress.counted <= 6
    ratio = progress.compared[0].ratio
    assert ratio.low < 1.1 < ratio.high


def test_equal_versions_are_the_same_within_the_margin(store: Store) -> None:
    progress = compared(store, noisy(1.0, 0.004))
    assert [each.outcome for each in progress.compared] == [Outcome.SAME]


def test_order_alternates_and_the_first_pair_does_not_count(store: Store) -> None:
    cold = iter([9.0, 5.0])
    values = noisy(1.0, 0.0)
    chain = Chain(store, lambda label: next(cold, 0.0) or values(label))
    comparison = Comparison(store, a_side("A"), a_side("B"), ("batch_cost",), Limits(pairs=4), chain)
    every = list(comparison.run())
    assert "".join(chain.order) == "ABBAABBAAB"
    assert [pair.number for pair in every[-1].pairs] == [0, 1, 2, 3, 4]
    assert [pair.first for pair in every[-1].pairs] == ["A", "B", "A", "B", "A"]
    assert (every[0].compared, every[0].why) == ((), "")
    assert every[-1].compared[0].values == ((1.0, 1.0),) * 4
    assert every[-1].why == "4 pairs are done"


def test_noise_that_decides_nothing_ends_at_the_limit(store: Store) -> None:
    progress = compared(store, noisy(1.0, 0.2), most_pairs=5)
    assert [each.outcome for each in progress.compared] == [Outcome.UNDECIDED]
    assert (progress.is_decided, progress.why) == (False, "the limit of 5 pairs is reached")


def test_used_budget_ends_the_comparison(store: Store) -> None:
    progress = compared(store, noisy(1.0, 0.2), budget_s=0.0001)
    assert progress.why == "the budget of 0.0001 s is used up"
    assert progress.counted == 0


@pytest.mark.parametrize("status", [Status.FAILED, Status.CONFIG_ERROR])
def test_failing_side_ends_the_comparison(store: Store, status: Status) -> None:
    progress = compared(store, lambda label: status if label == "B" else 1.0)
    assert (progress.failed, progress.compared) == ("B", ())
    assert progress.why == f"run run-2 of B is {status.value}: it is {status.value}"


def test_if_both_sides_fail_nothing_follows_for_b(store: Store) -> None:
    assert compared(store, lambda label: Status.FAILED).failed == "A"


def test_a_pair_that_the_nodes_broke_is_repeated(store: Store) -> None:
    statuses = iter([1.0, 1.0, 1.0, Status.INFRA_FAILURE])
    progress = compared(store, lambda label: next(statuses, 1.0), pairs=4)
    assert progress.counted == 4
    assert all(run.status is Status.PASS for pair in progress.pairs for run in (pair.a, pair.b))


def test_two_broken_pairs_in_a_row_are_an_error(store: Store) -> None:
    with pytest.raises(InfraError, match="2 pairs in a row had an infra_failure; the last one, run run-"):
        compared(store, lambda label: Status.INFRA_FAILURE if label == "B" else 1.0)


def test_ctrl_c_keeps_the_counted_pairs(store: Store) -> None:
    values = iter([1.0] * 11)
    progress = compared(store, lambda label: next(values, Status.CANCELLED), pairs=9)
    assert (progress.counted, progress.why) == (4, "stopped by a user")
    assert [each.outcome for each in progress.compared] == [Outcome.SAME]


def test_missing_metric_is_an_error_that_lists_measured_metrics(store: Store) -> None:
    with pytest.raises(ConfigError) as caught:
        compared(store, noisy(1.0, 0.0), names=("ips",))
    assert str(caught.value).startswith("--metric: run run-1 did not measure it, or measured 0; found 'ips'")
    assert "batch_cost" in str(caught.value)


def test_without_names_the_most_direct_speed_is_compared(store: Store) -> None:
    progress = compared(store, noisy(1.0, 0.0), names=(), pairs=4)
    assert {each.key.metric for each in progress.compared} == {"batch_cost"}


def test_a_metric_without_a_direction_is_refused() -> None:
    with pytest.raises(ConfigError, match="neither a lower nor a higher value of this metric is better"):
        check_names(["batch_cost", "eval.top1", "data_num"], ChainMetrics())


def test_memory_is_selected_by_its_plain_name(store: Store) -> None:
    chain = Chain(store, noisy(1.2, 0.0), "peak_rss.all")
    comparison = Comparison(store, a_side("A"), a_side("B"), ("peak_rss",), Limits(pairs=4), chain)
    (each,) = list(comparison.run())[-1].compared
    assert (each.key.metric, each.outcome) == ("peak_rss.all", Outcome.WORSE)


def test_a_metric_that_one_side_lost_is_named_and_not_passed_over(store: Store) -> None:
    both = Chain(store, noisy(1.0, 0.0))

    def execute(first: Side, second: Side) -> tuple[Run, Run]:
        runs = both(first, second)
        for side, run in zip((first, second), runs, strict=True):
            if side.label == "A":
                store.measurements.add(losses(run.id, [4.0], metric="ips", unit="s"))
        return runs

    comparison = Comparison(store, a_side("A"), a_side("B"), ("batch_cost", "ips"), Limits(pairs=4), execute)
    last = list(comparison.run())[-1]
    assert [each.key.metric for each in last.compared] == ["batch_cost"]
    assert [key.metric for key in last.missing] == ["ips"]


@pytest.mark.parametrize(
    ("kind", "names"), [(StepKind.TRAIN, ["wall_time"]), (StepKind.EVAL, [])], ids=["training", "evaluation"]
)
def test_wall_time_is_the_speed_of_trainings_only(store: Store, kind: StepKind, names: list[str]) -> None:
    plan = a_plan()
    train = plan.step(TRAIN).model_copy(update={"kind": kind})
    run = a_run()
    store.runs.create(run, plan.model_copy(update={"steps": (train, *plan.steps[1:])}))
    store.attempts.open(run.id, TRAIN, run.nodes, run.created_at)
    store.measurements.add(losses(run.id, [7.0], metric="wall_time", phase=Phase.RESOURCE, unit="s"))
    assert [key.metric for key in values_of(store, run, ()) if key.step == TRAIN] == names
