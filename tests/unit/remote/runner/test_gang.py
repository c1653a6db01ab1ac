"""Staging and `go`: members begin together or not at all."""

import pytest

from tipcflow.domain import EndReason

pytestmark = pytest.mark.process


def test_nothing_runs_before_go(bench):
    job = bench.job("date +%s.%N > began", barrier=True)
    assert bench.call("start", job)["state"] == "staged"
    assert bench.call("poll", job)["heartbeat"]["state"] == "staged"
    assert not (bench.root / "began").exists()
    bench.call("go", job)
    assert bench.ended(job).ok
    assert (bench.root / "began").exists()


def test_two_members_begin_together(bench):
    jobs = [bench.job(f"date +%s.%N > began{n}", barrier=True, step=f"s{n}", slots=(n,)) for n in (0, 1)]
    assert [bench.call("start", job)["state"] for job in jobs] == ["staged", "staged"]
    for job in jobs:
        (job / "go").touch()
    for job in jobs:
        assert bench.ended(job).ok
    began = [float((bench.root / f"began{n}").read_text()) for n in (0, 1)]
    assert abs(began[0] - began[1]) < 1.0


def test_member_without_go_ends_with_barrier_timeout(bench):
    record = bench.end_of("touch ran", barrier=True, barrier_s=0.3)
    assert (record.reason, record.message) == (EndReason.BARRIER_TIMEOUT, "no go within 0.3 s")
    assert not (bench.root / "ran").exists()


def test_a_staged_job_can_be_stopped(bench):
    job = bench.job("touch ran", barrier=True)
    bench.call("start", job)
    bench.call("stop", job, "node b could not be staged")
    record = bench.ended(job)
    assert (record.reason, record.message) == (EndReason.STOPPED, "node b could not be staged")
    assert not (bench.root / "ran").exists()


def test_stop_wins_over_go(bench):
    job = bench.job("touch ran", barrier=True)
    (job / "stop").write_text("too late")
    (job / "go").touch()
    bench.call("start", job)
    assert bench.ended(job).reason is EndReason.STOPPED
    assert not (bench.root / "ran").exists()


def test_lease_expires_while_staged(bench):
    assert bench.end_of("touch ran", barrier=True, lease_s=0.3).reason is EndReason.LEASE_EXPIRED
