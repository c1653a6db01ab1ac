"""Listing and reaping: living jobs are left alone unless they are named."""

import pytest

pytestmark = pytest.mark.process


def lost(bench, wait, step, text):
    """A job whose runner was killed, with its processes still there."""
    job = bench.job(text, step=step)
    pid = bench.call("start", job)["pid"]
    # A `trap` that is not set yet ignores nothing.
    log = job / "logs" / "main.log"
    wait(lambda: log.exists() and log.read_text() == "up\n", "the command's first word")
    bench.kill_runner(pid)
    wait(lambda: bench.call("poll", job)["state"] == "lost", "lost")
    return job


def test_list_shows_processes_runners_and_jobs(bench):
    job = bench.job("sleep 303; true")
    pid = bench.call("start", job)["pid"]
    report = bench.call("list", bench.workspace)
    assert {process["pid"] for process in report["processes"]} == set(bench.ours()) - set(bench.guards())
    by_pid = {process["pid"]: process for process in report["processes"]}
    assert by_pid[pid]["runner"]
    sleeper = next(process for process in report["processes"] if process["cmdline"].startswith("sleep 303"))
    assert (sleeper["job"], sleeper["node"], sleeper["runner"]) == ("r1/train/norm_train/1", "a", False)
    assert sleeper["rss"] > 0
    assert [(one["job"], one["state"]) for one in report["jobs"]] == [("r1/train/norm_train/1", "running")]
    bench.call("stop", job, "over")
    bench.ended(job)
    report = bench.call("list", bench.workspace)
    assert (report["processes"], [one["state"] for one in report["jobs"]]) == ([], ["ended"])


def test_processes_of_another_workspace_are_not_listed(bench, tmp_path):
    job = bench.job("sleep 300")
    bench.call("start", job)
    listed = bench.call("list", tmp_path / "other")
    assert (listed["processes"], listed["jobs"]) == ([], [])
    assert bench.call("reap", tmp_path / "other")["killed"] == []
    assert bench.call("poll", job)["state"] == "running"
    bench.call("stop", job, "over")
    bench.ended(job)


def test_reap_ends_lost_jobs_and_spares_living_ones(bench, wait):
    living = bench.job("sleep 304", step="living")
    bench.call("start", living)
    lost(bench, wait, "lost", "trap '' TERM; echo up; while :; do sleep 0.2; done")
    report = bench.call("reap", bench.workspace)
    assert {one["job"] for one in report["killed"]} == {"r1/lost/1"}
    assert "SIGKILL" in {one["signal"] for one in report["killed"]}
    assert report["left"] == []
    assert bench.call("poll", living)["state"] == "running"
    bench.call("stop", living, "over")
    bench.ended(living)


def test_reap_ends_a_named_running_job(bench):
    jobs = [bench.job("sleep 305", step=step, slots=(n,)) for n, step in enumerate("xy")]
    for job in jobs:
        bench.call("start", job)
    report = bench.call("reap", bench.workspace, "--job", "r1/x/1")
    assert report["stopped"] == ["r1/x/1"]
    assert bench.call("poll", jobs[0])["record"]["message"] == "reaped"
    assert bench.call("poll", jobs[1])["state"] == "running"
    assert bench.call("reap", bench.workspace, "--living")["stopped"] == ["r1/y/1"]
    assert bench.ended(jobs[1]).message == "reaped"


def test_a_running_job_whose_folder_is_gone_is_still_found(bench, wait):
    import shutil

    job = bench.job("sleep 306")
    bench.call("start", job)
    # A runner without its job's folder before the command begins ends at once.
    wait(lambda: len(bench.call("list", bench.workspace)["processes"]) >= 2, "the job's command")
    jobs = bench.workspace / "jobs"

    def remove() -> bool:
        shutil.rmtree(jobs, ignore_errors=True)  # fails if the runner writes a file meanwhile
        return not jobs.exists()

    wait(remove, "the folder removed")
    assert len(bench.call("list", bench.workspace)["processes"]) >= 2
    bench.call("reap", bench.workspace, "--living")
    wait(lambda: not bench.ours(), "nothing left")
