"""Honest runs are green: many of them, with the natural noise of a shared machine."""

import pytest
from tests.support.certify import Site
from tests.support.liars.lie import rewrite
from tests.support.liars.table import saw_honest
from tests.support.liars.training import quiet_for_seconds

from tipcflow.domain import Status

RUNS = 200
EVERYDAY = 3
MEASURED = (
    (
        "        time.sleep(args.step_time",
        "        began = time.perf_counter()\n        time.sleep(args.step_time",
    ),
    ("avg_batch_cost: {args.step_time:.5f}", "avg_batch_cost: {time.perf_counter() - began:.5f}"),
    ("{args.batch_size / args.step_time:.5f}", "{args.batch_size / (time.perf_counter() - began):.5f}"),
)


def _honest(site: Site, runs: int) -> None:
    """Run the suite again and again with measured times; every fifth run has another seed."""
    for old, new in MEASURED:
        rewrite(site.suite / "train.py", old, new)
    ended = [site.run(seed=str(0 if number % 5 else number)) for number in range(runs)]
    red = [f"{one.run.id} {one.run.status}: {one.run.reason}" for one in ended if one.code != 0]
    with site.store() as store:
        confirmed = sum(run.trigger == "confirm" for run in store.runs.newest(limit=2 * runs))
        statuses = [run.status for run in store.runs.newest(limit=2 * runs) if run.trigger == "cli"]
    green = sum(status in (Status.PASS, Status.IMPROVEMENT) for status in statuses)
    if runs == RUNS:
        saw_honest(runs, green, confirmed)
    assert not red, "\n".join(red)
    assert green == runs


@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_honest_runs_are_green(site: Site) -> None:
    _honest(site, EVERYDAY)


@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_a_suite_that_reports_no_ranks_is_green(site: Site) -> None:
    """Only rank 0 logs; the other ranks are known as processes."""
    quiet_for_seconds(site)
    report = site.run()
    assert report.code == 0, report.output


@pytest.mark.e2e
@pytest.mark.full
@pytest.mark.quiet
@pytest.mark.timeout(7200)
def test_two_hundred_honest_runs_are_green(site: Site) -> None:
    _honest(site, RUNS)
