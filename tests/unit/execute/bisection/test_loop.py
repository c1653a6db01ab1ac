"""The loop with a real database; the runs are stored as an execution would store them."""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.bisections.chain import CHAIN, COMMITS, Chain, Value, noisy
from tests.support.stories import INFER, T0, TRAIN, a_run, losses, open_store, some_facts

from tipcflow.domain import ConfigError, InfraError, PartKey, Run, Status
from tipcflow.execute.bisection.builds import Build
from tipcflow.execute.bisection.commits import Commit
from tipcflow.execute.bisection.loop import Bisection, Progress
from tipcflow.execute.bisection.subject import FAILURE, Subject
from tipcflow.execute.chain.measured import ChainMetrics
from tipcflow.store import Store

pytestmark = pytest.mark.slow


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "t.db") as opened:
        yield opened


def search(store: Store, value: Value, *, name: str = "batch_cost", **more: object) -> tuple[Progress, Chain]:
    chain = Chain(store, value)
    subject = Subject(CHAIN, a_run().mode, "spec", name, step="train" if name != FAILURE else "")
    bisection = Bisection(store, subject, COMMITS, chain, 0.95, **more)  # type: ignore[arg-type]
    return list(bisection.run())[-1], chain


@pytest.mark.parametrize("change", [1, 5, 16])
def test_the_commit_that_made_a_chain_slower_is_found(store: Store, change: int) -> None:
    progress, chain = search(store, noisy(change, 1.2, 0.02))
    assert progress.assessment is not None
    assert progress.is_certain
    assert progress.assessment.best.versions == (change,)
    assert chain.executed[:4] == [16, 16, 0, 0], "the ends first"
    assert len(chain.executed) < 16


def test_bisection_resumes_and_uses_ci_measurements(store: Store) -> None:
    progress, first = search(store, noisy(6, 1.2, 0.02), most_runs=3)
    assert (progress.assessment, progress.why) == (None, "the limit of 3 runs is reached")
    ci = Chain(store, noisy(6, 1.2, 0.02))
    ci.numbers = itertools.count(50)
    ci(COMMITS[0], trigger="cli")
    again = Chain(store, noisy(6, 1.2, 0.02))
    again.numbers = itertools.count(100)
    bisection = Bisection(store, Subject(CHAIN, a_run().mode, "spec", "batch_cost", "train"), COMMITS, again, 0.95)
    progress = list(bisection.run())[-1]
    assert progress.is_certain
    assert again.executed.count(0) == 0, "one run of --good was its own, one was CI's"
    assert progress.measured.count == len(first.executed) + 1 + len(again.executed)


def test_runs_of_other_hardware_do_not_count(store: Store) -> None:
    other = Chain(store, lambda place: 9.0)
    other.numbers = itertools.count(500)
    for place in (0, 16, 8):
        other(COMMITS[place], environment="gpu", trigger="cli")
    progress, chain = search(store, noisy(3, 1.2, 0.01))
    assert progress.is_certain
    assert not set(chain.executed) - set(range(17))
    assert all(value < 2 for values in progress.measured.values.values() for value in values)


def test_commits_that_cannot_be_measured_are_skipped_and_named(store: Store) -> None:
    broken = {4: Status.FAILED, 5: Status.CONFIG_ERROR, 7: Status.FAILED}
    slow = noisy(6, 1.3, 0.01)
    progress, chain = search(store, lambda place: broken.get(place) or slow(place))
    assert progress.assessment is not None
    assert progress.is_certain
    assert 6 in progress.assessment.best.versions
    assert set(progress.measured.skipped) <= set(broken)
    assert all(chain.executed.count(place) <= 1 for place in broken)
    assert "failed: it is failed" in progress.measured.skipped.values()


def test_bisection_of_a_failure_finds_the_commit(store: Store) -> None:
    progress, chain = search(store, lambda place: Status.FAILED if place >= 9 else 1.0, name=FAILURE)
    assert progress.assessment is not None
    assert progress.assessment.best.versions == (9,)
    assert len(chain.executed) <= 5 + 6


def test_bisection_finds_a_flaky_failure(store: Store) -> None:
    source = random.Random(4)
    progress, _ = search(
        store,
        lambda place: Status.FAILED if place >= 9 and source.random() < 0.5 else 1.0,
        name=FAILURE,
        most_runs=120,
    )
    assert progress.assessment is not None
    assert 9 in {version for one in progress.assessment.candidates[:2] for version in one.versions}


@pytest.mark.parametrize(
    ("value", "name", "words"),
    [
        (lambda place: 1.0, "batch_cost", "by 3 standard errors: median 1 at 00000000, 1 at 00000000"),
        (noisy(5, 0.7, 0.01), "batch_cost", "not worse at the bad end"),
        (lambda place: 1.0, FAILURE, "did not fail in 6 runs"),
        (lambda place: Status.FAILED, FAILURE, "fails at this commit, too"),
        (lambda place: Status.FAILED, "batch_cost", "did not measure it"),
        (lambda place: Status.CONFIG_ERROR, "batch_cost", "--bad: cannot be measured"),
        (lambda place: 1.0, "ips", "did not measure it"),
    ],
)
def test_ends_other_than_good_and_bad_raise_one_error(store: Store, value: Value, name: str, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        search(store, value, name=name)
    assert words in str(error.value)


def test_several_legs_with_the_metric_are_named(store: Store) -> None:
    class Legs(Chain):
        def __call__(self, commit: Commit, **fields: object) -> Run:
            run = super().__call__(commit, **fields)
            more = losses(run.id, [1.0], metric="batch_cost", step=INFER, leg="cpu_onednn_on")
            self.store.measurements.add(more)
            return run

    chain = Legs(store, noisy(5, 1.2, 0.01))
    bisection = Bisection(store, Subject(CHAIN, a_run().mode, "spec", "batch_cost"), COMMITS, chain, 0.95)
    with pytest.raises(ConfigError, match=f"2 steps or legs have this metric.*{INFER} cpu_onednn_on, {TRAIN}"):
        list(bisection.run())


def test_unusable_cluster_ends_the_bisection(store: Store) -> None:
    with pytest.raises(
        InfraError, match="2 runs in a row are infra_failure; the last one, run-2: it is infra_failure"
    ):
        search(store, lambda place: Status.INFRA_FAILURE)


def test_cancelled_run_ends_the_bisection(store: Store) -> None:
    progress, chain = search(store, lambda place: Status.CANCELLED)
    assert (progress.why, chain.executed) == ("run run-1 was cancelled", [16])


def test_runs_of_a_bisection_are_not_history(store: Store) -> None:
    search(store, noisy(5, 1.2, 0.01))
    run = a_run("later", created_at=T0 + 9_999, environment="cpu")
    store.runs.create(run)
    store.nodes.save(run.id, [some_facts("node-a")])
    assert store.history.accepted(CHAIN, run.mode, "cpu") == []
    assert store.history.planned_before(run) == []
    assert store.history.elsewhere(run.model_copy(update={"environment": "x"})) == ("", 0)


def test_a_metric_without_direction_is_refused() -> None:
    with pytest.raises(ConfigError, match="neither a lower nor a higher value"):
        Subject(CHAIN, "m", "spec", "iterations").check(ChainMetrics())
    Subject(CHAIN, "m", "spec", "ips").check(ChainMetrics())
    Subject(CHAIN, "m", "spec", FAILURE).check(ChainMetrics())


def test_runs_of_another_framework_do_not_count_for_commits(store: Store) -> None:
    other = Chain(store, lambda place: 9.0)
    for place in (0, 16, 8):
        other(COMMITS[place], framework="paddlepaddle 2.6.2", trigger="cli")
    chain = Chain(store, noisy(3, 1.2, 0.01))
    chain.numbers = itertools.count(100)
    bisection = Bisection(store, Subject(CHAIN, a_run().mode, "spec", "batch_cost", "train"), COMMITS, chain, 0.95)
    progress = list(bisection.run())[-1]
    assert progress.is_certain
    assert all(value < 2 for values in progress.measured.values.values() for value in values)


BUILDS = tuple(Build(f"3.{number}", f"paddlepaddle==3.{number}") for number in range(9))


class Builds(Chain):
    """Stores a run for each execution with a build."""

    def __call__(self, build: Build, **fields: object) -> Run:  # type: ignore[override]
        place = BUILDS.index(build)
        known = {"suite_commit": "1" * 40, "suite_sha256": "2" * 64, "framework": f"paddlepaddle {build.id}"}
        return super().__call__(COMMITS[place], **{**known, **fields})


def bisect_builds(store: Store, value: Value) -> tuple[list[Progress], Builds]:
    chain = Builds(store, value)
    subject = Subject(CHAIN, a_run().mode, "spec", "batch_cost", step="train")
    return list(Bisection(store, subject, BUILDS, chain, 0.95).run()), chain


def test_the_build_that_made_a_chain_slower_is_found(store: Store) -> None:
    other = Builds(store, lambda place: 9.0)
    other.numbers = itertools.count(500)
    other(BUILDS[4], suite_sha256="3" * 64, trigger="cli")
    progress, chain = bisect_builds(store, noisy(6, 1.2, 0.01))
    assert progress[-1].is_certain
    assert progress[-1].assessment is not None
    assert progress[-1].assessment.best.versions == (6,)
    assert chain.executed[:4] == [8, 8, 0, 0]
    values = progress[-1].measured.values.values()
    assert all(value < 2 for several in values for value in several), (
        "a run of another suite content does not count"
    )


def test_a_build_that_cannot_be_installed_is_skipped(store: Store) -> None:
    slow = noisy(6, 1.3, 0.01)
    progress, chain = bisect_builds(store, lambda place: Status.INFRA_FAILURE if place == 4 else slow(place))
    assert progress[-1].is_certain
    assert progress[-1].measured.skipped == {4: "2 runs are infra_failure: it is infra_failure"}
    assert chain.executed.count(4) == 2


def test_nodes_that_fail_with_several_builds_are_an_error(store: Store) -> None:
    slow = noisy(6, 1.3, 0.01)
    with pytest.raises(InfraError, match="3 runs in a row are infra_failure"):
        bisect_builds(store, lambda place: slow(place) if place in (0, 8) else Status.INFRA_FAILURE)


def test_parallel_search_names_further_versions_to_measure(store: Store) -> None:
    chain = Chain(store, noisy(6, 1.2, 0.0))
    subject = Subject(CHAIN, a_run().mode, "spec", "batch_cost", "train")
    bisection = Bisection(store, subject, COMMITS, chain, 0.95, parallel=3)
    first = bisection.advance([], 0.0)
    assert (first.next, first.others) == (16, (16, 0))
    own: list[tuple[int, Run]] = []
    while (progress := bisection.advance(own, 0.0)).next is not None:
        places = [progress.next, *progress.others][:3]
        assert len(places) <= 3
        own += [(place, chain(COMMITS[place])) for place in places]
    assert progress.assessment is not None
    assert (progress.is_certain, progress.assessment.best.versions) == (True, (6,))


def test_cancelled_run_ends_the_search_until_a_resumption(store: Store) -> None:
    chain = Chain(store, lambda place: Status.CANCELLED)
    subject = Subject(CHAIN, a_run().mode, "spec", "batch_cost", "train")
    bisection = Bisection(store, subject, COMMITS, chain, 0.95)
    own = [(16, chain(COMMITS[16]))]
    assert bisection.advance(own, 0.0).why == "run run-1 was cancelled"
    assert bisection.advance(own, 0.0, since=1).next == 16


def test_later_runs_execute_the_step_that_measured_the_metric(store: Store) -> None:
    subject = Subject(CHAIN, a_run().mode, "spec", "batch_cost")
    bisection = Bisection(store, subject, COMMITS, Chain(store, noisy(5, 1.2, 0.02)), 0.95)
    parts = [bisection.part() for _ in bisection.run()]
    assert parts[0] == (), "no run has measured the metric"
    assert set(parts[1:]) == {(PartKey(TRAIN),)}


def test_every_run_for_a_failure_executes_all_steps(store: Store) -> None:
    chain = Chain(store, lambda place: Status.FAILED if place >= 5 else 1.0)
    bisection = Bisection(store, Subject(CHAIN, a_run().mode, "spec", FAILURE), COMMITS, chain, 0.95)
    assert {bisection.part() for _ in bisection.run()} == {()}
