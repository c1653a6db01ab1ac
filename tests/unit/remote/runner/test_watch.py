"""The stream of events: complete, resumable, and over when the job or the reader is."""

import json
import os
import signal
import subprocess

import pytest
from tests.unit.remote.conftest import BOTH

pytestmark = [pytest.mark.process, BOTH]


def events(bench, job, *words):
    """All events of one watch."""
    out, err = bench.popen("watch", job, *words).communicate(timeout=60)
    assert not err, err.decode()
    return [json.loads(line) for line in out.splitlines()]


def text(report, leg=""):
    """The log that the events carried."""
    return "".join(one["data"] for one in report if one["event"] == "log" and one["leg"] == leg)


def test_all_events_of_a_job_are_in_order(bench):
    job = bench.job("echo one; sleep 0.4; exit 3", "echo two", legs=True, keep_going=True, barrier=True)
    bench.call("start", job)
    watch = bench.popen("watch", job)
    bench.call("go", job)
    out, err = watch.communicate(timeout=60)
    assert not err, err.decode()
    report = [json.loads(line) for line in out.splitlines()]
    assert (text(report, "leg0"), text(report, "leg1")) == ("one\n", "two\n")
    assert [one["state"] for one in report if one["event"] == "state"][-1] == "running"
    assert [one["record"]["leg"] for one in report if one["event"] == "leg"] == ["leg0", "leg1"]
    assert any(one["event"] == "sample" and one["total"] > 0 for one in report)
    assert report[-1]["event"] == "end"
    assert report[-1]["record"]["message"] == "1 of 2 legs failed, the first: leg0: exited with 3"
    bench.ended(job)


def test_an_ended_job_reports_everything_at_once(bench):
    job = bench.job("echo hello")
    bench.call("start", job)
    bench.ended(job)
    report = events(bench, job)
    assert [one["event"] for one in report if one["event"] != "sample"] == ["log", "leg", "end"]


def test_a_second_watch_continues_where_the_first_was_cut(bench):
    job = bench.job("printf 0123456789")
    bench.call("start", job)
    bench.ended(job)
    report = [one for one in events(bench, job, "--resume", '{"":4}') if one["event"] == "log"]
    assert [(one["offset"], one["size"], one["data"]) for one in report] == [(4, 6, "456789")]


def test_watch_returns_after_the_time_limit_and_the_job_continues(bench):
    job = bench.job("sleep 300", lease_s=2.0)
    bench.call("start", job)
    report = events(bench, job, "--for", "3.5")
    assert {one["event"] for one in report} == {"state", "sample"}
    assert bench.call("poll", job)["state"] == "running"
    bench.call("stop", job, "over")
    bench.ended(job)


def test_staged_job_reports_alive_events(bench):
    job = bench.job("true", barrier=True)
    bench.call("start", job)
    report = events(bench, job, "--for", "2.5")
    assert report[0]["event"] == "state"
    assert [one["state"] for one in report if one["event"] == "alive"]
    bench.call("stop", job, "over")
    bench.ended(job)


def test_dead_runner_is_lost(bench):
    job = bench.job("echo said; sleep 300")
    pid = bench.call("start", job)["pid"]
    watch = bench.popen("watch", job)
    os.kill(pid, signal.SIGKILL)
    report = [json.loads(line) for line in watch.communicate(timeout=60)[0].splitlines()]
    assert report[-1] == {"event": "lost"}
    bench.call("reap", bench.workspace)


def test_job_that_was_never_started_is_absent(bench):
    assert events(bench, bench.job("true"))[-1] == {"event": "absent"}


def test_watch_ends_with_its_reader(bench):
    job = bench.job("sleep 300", barrier=True)
    bench.call("start", job)
    watch = bench.popen("watch", job, "--for", "600")
    watch.stdout.readline()
    watch.stdout.close()
    assert watch.wait(timeout=20) == 0
    bench.call("stop", job, "over")
    bench.ended(job)


def test_binary_garbage_and_cut_characters_are_replaced(bench):
    data = bytes(range(256)) * 600 + "größe→😀\n".encode() * 9000 + b"\xf0\x9f"
    (bench.root / "data").write_bytes(data)
    job = bench.job("cat data")
    bench.call("start", job)
    bench.ended(job)
    report = [one for one in events(bench, job) if one["event"] == "log"]
    offset = 0
    for one in report:
        assert one["offset"] == offset
        offset += one["size"]
    assert offset == len(data)
    assert len(report) > 2
    # Characters of the readable part are whole, though pieces of 64 KiB cut through some of them.
    assert "".join(one["data"] for one in report).endswith("größe→😀\n" * 9000 + "�")


def test_long_lines_arrive_in_pieces(bench):
    job = bench.job("for i in 1 2 3; do head -c 3000000 /dev/zero | tr '\\0' x; echo; done")
    bench.call("start", job)
    bench.ended(job)
    report = events(bench, job)
    assert max(len(one["data"]) for one in report if one["event"] == "log") <= 65536
    assert text(report) == ("x" * 3_000_000 + "\n") * 3


def test_slow_reader_gets_the_end_of_the_stream(bench):
    """Three times as much as is ever caught up with; offsets stay those of the file."""
    total = 48 * 1024 * 1024
    job = bench.job(f"seq 1 100000000 | head -c {total}; echo; echo last")
    bench.call("start", job)
    bench.ended(job)
    report = [one for one in events(bench, job) if one["event"] == "log"]
    offset = 0
    for one in report:
        assert one["offset"] == offset
        offset += one["size"]
    assert offset == total + len("\nlast\n")
    result = f"\n[tipcflow: {report[0]['size']} bytes of this log are not shown; the whole is on the node]\n"
    assert report[0]["data"] == result
    shown = text(report[1:])
    assert len(shown) <= 1024 * 1024
    with (job / "logs/main.log").open("rb") as log:
        log.seek(report[0]["size"])
        assert log.read().decode() == shown, "what is shown begins with a whole line"
    assert shown.endswith("\nlast\n")


def test_samples_of_days_are_not_read_again(bench):
    job = bench.job("true")
    bench.call("start", job)
    bench.ended(job)
    old = json.dumps({"t": 1, "leg": "", "rss": {}, "total": 1, "cpu_s": 0, "procs": 1}) + "\n"
    last = json.dumps({"t": 2, "leg": "", "rss": {"0": 5}, "total": 5, "cpu_s": 0, "procs": 1}) + "\n"
    (job / "samples.jsonl").write_text(old * 100_000 + last)
    assert [one["total"] for one in events(bench, job) if one["event"] == "sample"] == [5]


def test_the_heartbeat_describes_the_log(bench, wait):
    job = bench.job("printf 12345; sleep 300")
    bench.call("start", job)
    beat = wait(lambda: (b := bench.call("poll", job)["heartbeat"])["log_size"] == 5 and b, "the log's size")
    assert beat["log_t"] > 0
    bench.call("stop", job, "over")
    bench.ended(job)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["dance"], "no subcommand 'dance'"),
        ([], "no subcommand ''"),
        (["poll"], "poll takes JOB"),
        (["poll", "a", "b"], "found a b"),
        (["watch", "a", "--for"], "--for needs a value"),
        (["reap", "a", "--all"], "found a --all"),
    ],
)
def test_a_wrong_call_is_an_error(bench, words, message):
    done = subprocess.run([bench.node.python, str(bench.runner), *words], capture_output=True, check=False)
    assert done.returncode == 2
    assert message in done.stderr.decode()


def test_a_reason_may_look_like_an_option(bench):
    job = bench.job("true")
    bench.call("stop", job, "--living")
    assert json.loads((job / "stop").read_text())["reason"] == "--living"
