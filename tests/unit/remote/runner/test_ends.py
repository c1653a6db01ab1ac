"""Every way in which a job ends: its record names the way, and none of its processes is left."""

import itertools
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from tests.unit.remote.conftest import WAIT_S, until

from tipcflow.domain import EndReason, JobCommand

pytestmark = pytest.mark.process


def test_success_is_recorded_with_times_and_log(bench):
    before = time.time()
    job = bench.job("echo hello; echo error >&2; sleep 0.2")
    bench.call("start", job)
    record = bench.ended(job)
    assert record.ok
    assert (record.reason, record.exit_code, record.signal) == (EndReason.EXITED, 0, None)
    assert before - 1 < record.started_at < record.ended_at < time.time() + 1
    assert record.duration_s >= 0.2
    assert (record.run, record.step, record.attempt, record.node) == ("r1", "train/norm_train", 1, "a")
    assert (job / "logs/main.log").read_text() == "hello\nerror\n"


def test_node_is_timed_before_and_after_a_job(bench):
    job = bench.job("true", probe=True)
    bench.call("start", job)
    record = bench.ended(job)
    assert record.ok
    assert set(record.probes) == {"cpu", "memory", "disk"}
    assert all(len(timed) == 2 and min(timed) > 0 for timed in record.probes.values()), record.probes
    assert not list(job.glob("probe.*"))


def test_a_job_without_timing_measures_nothing(bench):
    assert bench.end_of("true").probes == {}


def test_exit_code_of_the_shell_is_recorded(bench):
    record = bench.end_of("set -e; exit 7; echo never")
    assert (record.reason, record.exit_code, record.message) == (EndReason.EXITED, 7, "exited with 7")
    assert not record.ok


def test_a_shell_can_be_killed_by_its_own_command(bench):
    record = bench.end_of("echo before; kill -9 $$; echo never")
    assert (record.reason, record.exit_code, record.signal) == (EndReason.SIGNALED, None, 9)
    assert record.message == "ended by signal 9"


def test_signal_of_the_shells_child_stays_the_shells_code(bench):
    record = bench.end_of("bash -c 'kill -9 $$'; exit $?")
    assert (record.reason, record.exit_code) == (EndReason.EXITED, 137)


def test_killed_launchers_orphan_is_ended_and_counted(bench):
    """A launcher that is SIGKILLed leaves its worker training: the runner adopts it and ends it."""
    record = bench.end_of("bash -c 'sleep 300 & echo worker $!; kill -9 $$'; exit $?")
    assert (record.exit_code, record.killed) == (137, 1)


def test_daemonised_grandchild_without_our_marks_is_ended(bench):
    record = bench.end_of("setsid env -i /bin/sleep 300 > /dev/null 2>&1 & sleep 0.2; exit 0")
    assert (record.exit_code, record.killed) == (0, 1)


def test_worker_that_ignores_term_is_killed(bench):
    record = bench.end_of("bash -c 'trap \"\" TERM; while :; do sleep 0.1; done' & sleep 0.3; exit 3")
    assert (record.exit_code, record.killed >= 1) == (3, True)


DAEMON = """
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
for _ in (1, 2):
    if os.fork():
        os._exit(0)
    os.setsid()
os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(300)", sys.argv[1]], {})
"""


@pytest.mark.parametrize("bench", ["ours"], indirect=True)
@pytest.mark.parametrize("ending", ["exit 0", "sleep 300", "kill -9 $$"])
def test_a_daemon_that_hides_and_ignores_term_is_killed(bench, wait, ending):
    """Twice forked, in a session of its own, without our marks, deaf to TERM."""
    (bench.root / "daemon.py").write_text(DAEMON)
    name = f"daemon-of-{bench.root}"
    job = bench.job(f'{sys.executable} daemon.py "{name}"; touch begun; {ending}', kill_after_s=0.2)
    bench.call("start", job)
    wait(lambda: (bench.root / "begun").exists(), "the daemon")
    if ending == "sleep 300":
        bench.call("stop", job, "over")
    bench.ended(job)
    assert not [pid for pid, words in cmdlines() if name in words]


def cmdlines():
    """Every process's pid and words."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            yield int(entry.name), (entry / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue


@pytest.mark.full
@pytest.mark.parametrize("bench", ["ours"], indirect=True)
def test_a_lease_counts_though_clocks_jump(bench):
    """What renews it is that its time stamp changes, wherever to."""
    job = bench.job("sleep 300", lease_s=4.0)
    bench.call("start", job)
    begin = time.monotonic()
    for number in itertools.count(1):
        os.utime(job / "lease", (1000 - number, 1000 - number))
        assert not (job / "exit.json").exists()
        if time.monotonic() - begin > 6:
            break
        time.sleep(0.1)
    assert bench.ended(job).reason is EndReason.LEASE_EXPIRED


def test_a_helper_that_is_just_ending_is_not_a_leftover(bench):
    record = bench.end_of("echo text > >(sleep 0.05; cat > copy.txt)")
    assert (record.exit_code, record.killed) == (0, 0)
    assert (bench.root / "copy.txt").read_text() == "text\n"


def test_job_over_its_deadline_is_ended(bench):
    record = bench.end_of("sleep 300 & sleep 300", deadline_s=0.5)
    assert (record.reason, record.message) == (EndReason.DEADLINE, "not done within 0.5 s")
    assert record.duration_s < 10


def test_deadline_covers_all_commands_of_a_job(bench):
    record = bench.end_of("true", "sleep 300", "true", legs=True, keep_going=True, deadline_s=0.5)
    assert record.reason is EndReason.DEADLINE


def test_deadline_kills_processes_that_ignore_term(bench):
    record = bench.end_of("trap '' TERM; while :; do sleep 0.1; done", deadline_s=0.3, kill_after_s=0.3)
    assert (record.reason, record.signal) == (EndReason.DEADLINE, 9)


def test_stop_carries_its_reason(bench):
    job = bench.job("sleep 300")
    bench.call("start", job)
    bench.call("stop", job, "a peer failed: node 'b'")
    record = bench.ended(job)
    assert (record.reason, record.message) == (EndReason.STOPPED, "a peer failed: node 'b'")


def test_a_terminated_runner_ends_its_job(bench):
    job = bench.job("sleep 300")
    pid = bench.call("start", job)["pid"]
    os.kill(pid, signal.SIGTERM)
    record = bench.ended(job)
    assert (record.reason, record.message) == (EndReason.STOPPED, "the runner got SIGTERM")


def test_lease_expires_when_no_controller_is_heard_of(bench):
    record = bench.end_of("sleep 300", lease_s=0.5)
    assert (record.reason, record.message) == (EndReason.LEASE_EXPIRED, "no contact from a controller for 0.5 s")


def test_polls_renew_the_lease(bench):
    job = bench.job("while [ ! -e over ]; do sleep 0.05; done", lease_s=3.0)
    bench.call("start", job)
    begin = time.monotonic()
    while time.monotonic() - begin < 4.5:
        assert bench.call("poll", job)["state"] == "running"
    (bench.root / "over").touch()
    assert bench.ended(job).ok


def test_legs_continue_after_a_failure_and_keep_their_own_records(bench):
    job = bench.job("echo one; exit 3", "echo two", "kill -9 $$", legs=True, keep_going=True)
    bench.call("start", job)
    record = bench.ended(job)
    assert (record.reason, record.exit_code) == (EndReason.EXITED, 3)
    assert record.message == "2 of 3 legs failed, the first: leg0: exited with 3"
    legs = [json.loads(line) for line in (job / "legs.jsonl").read_text().splitlines()]
    assert [(leg["leg"], leg["reason"], leg.get("exit_code")) for leg in legs] == [
        ("leg0", "exited", 3),
        ("leg1", "exited", 0),
        ("leg2", "signaled", None),
    ]
    assert (job / "logs/leg1.log").read_text() == "two\n"


def test_without_keep_going_the_first_failure_ends_the_job(bench):
    record = bench.end_of("exit 3", "touch ran", legs=True)
    assert record.exit_code == 3
    assert not (bench.root / "ran").exists()


def test_a_missing_folder_is_a_reason_not_a_crash(bench):
    command = JobCommand(text="true", cwd="no/such")
    record = bench.end_of("true", commands=(command,))
    assert record.reason is EndReason.REFUSED
    assert "no/such: No such file or directory" in record.message


@pytest.mark.parametrize("names", [("PADDLE_TRAINER_ID", "PADDLE_TRAINERS_NUM"), ("RANK", "WORLD_SIZE")])
def test_the_world_size_that_a_launcher_passed_to_its_processes_is_stored(bench, names):
    rank, world = names
    worker = f"{rank}=%d {world}=%d python3 -c 'import time; time.sleep(0.6)' & "
    assert bench.end_of((worker % (0, 4)) + (worker % (1, 4)) + "wait").world_size == 4


def test_world_size_is_zero_without_a_launcher(bench):
    assert bench.end_of("WORLD_SIZE=7 sleep 0.6").world_size == 0, "without a rank it says nothing"


def test_peak_memory_is_kept_by_rank(bench):
    worker = "PADDLE_TRAINER_ID=%d python3 -c 'x = b\"1\" * %d; import time; time.sleep(0.6)' &"
    record = bench.end_of((worker % (0, 50_000_000)) + (worker % (1, 90_000_000)) + "wait")
    assert 50_000_000 < record.peak_rss_bytes["0"] < 90_000_000 < record.peak_rss_bytes["1"] < 140_000_000
    assert record.peak_rss_bytes["total"] > 140_000_000


def test_environment_is_the_jobs_own(bench):
    job = bench.job(
        'echo "$A|${B-unset}|${PADDLE_MASTER-unset}|${FLAGS_selected_gpus-unset}|${TRAINER_ID-unset}"; '
        'echo "$TIPCFLOW_JOB|$TIPCFLOW_NODE|${TIPCFLOW_RUNNER-unset}"',
        env={"A": "a 'b' $c", "B": ""},
    )
    bench.call("start", job, env={"B": "b", "PADDLE_MASTER": "x", "FLAGS_selected_gpus": "0", "TRAINER_ID": "1"})
    bench.ended(job)
    expected = "a 'b' $c|unset|unset|unset|unset\nr1/train/norm_train/1|a|unset\n"
    assert (job / "logs/main.log").read_text() == expected


def test_stdin_is_empty(bench):
    assert bench.end_of("cat").ok


# A launcher of three ranks that polls them once a second, as Paddle's does.
LAUNCHER = """
import os, subprocess, sys, time
codes = ["time.sleep(2.5); sys.exit(0)", "time.sleep(0.5); os.kill(os.getpid(), 9)", "time.sleep(300)"]
made = [
    subprocess.Popen(
        [sys.executable, "-c", "import os, sys, time; " + code], env=dict(os.environ, PADDLE_TRAINER_ID=str(rank))
    )
    for rank, code in enumerate(codes)
]
time.sleep(3.5)
made[2].terminate()
time.sleep(1)
sys.exit(max(one.wait() for one in made))
"""


def test_ends_of_ranks_are_recorded_in_order(bench):
    (bench.root / "launcher.py").write_text(LAUNCHER)
    record = bench.end_of(f"{sys.executable} launcher.py")
    assert [(one.rank, one.exit_code, one.signal) for one in record.ranks] == [
        (1, None, 9),
        (0, 0, None),
        (2, None, 15),
    ]
    assert record.started_at < record.ranks[0].at < record.ranks[2].at < record.ended_at + 1


@pytest.mark.parametrize(
    ("end", "by"),
    [
        (lambda bench, job: bench.call("stop", job, "over", "--by", "peer"), "peer"),
        (lambda bench, job: bench.call("stop", job, "over"), None),
        (lambda bench, job: bench.call("reap", bench.workspace, "--living", "--by", "operator"), "operator"),
        (lambda bench, job: os.kill(json.loads((job / "lock").read_text()), signal.SIGTERM), "node"),
    ],
)
def test_record_names_the_reason_of_a_stop(bench, end, by):
    job = bench.job("sleep 300")
    bench.call("start", job)
    end(bench, job)
    record = bench.ended(job)
    assert (record.reason, record.stopped_by) == (EndReason.STOPPED, by)


IN_ITS_FOLDER = "cd ../../../jobs/r1/*/1"


def test_a_record_that_the_job_writes_is_not_its_end(bench):
    """Any command can write the file; the runner's record replaces it when the job ends."""
    forged = json.dumps({"reason": "exited", "exit_code": 0, "started_at": 1, "ended_at": 2})
    job = bench.job(f"{IN_ITS_FOLDER}; echo '{forged}' > exit.json; sleep 1; exit 3")
    bench.call("start", job)
    until(lambda: (job / "exit.json").exists(), "the forged record")
    polled = bench.call("poll", job)
    assert (polled["state"], polled["record"]) == ("running", None)
    out, _ = bench.popen("watch", job).communicate(timeout=WAIT_S)
    last = json.loads(out.splitlines()[-1])
    assert (last["event"], last["record"]["exit_code"]) == ("end", 3)


def test_record_is_written_although_the_job_deletes_the_reserved_space(bench):
    assert bench.end_of(f"{IN_ITS_FOLDER}; rm exit.json.reserved; exit 4").exit_code == 4


# Parameter servers outlive the trainers, and the runner ends them when no trainer needs them.
PLACES = "10.77.0.1:20000,10.77.0.2:20000"
SERVER = f"TRAINING_ROLE=PSERVER POD_IP=10.77.0.2 PADDLE_PORT=20000 PADDLE_PSERVERS_IP_PORT_LIST={PLACES}"
TRAINER = f"TRAINING_ROLE=TRAINER PADDLE_TRAINER_ID=1 PADDLE_TRAINERS_NUM=2 PADDLE_PSERVERS_IP_PORT_LIST={PLACES}"


def launcher(server: str, trainer: str) -> str:
    """A launcher that waits for its processes, as Paddle's: it ends all when one fails."""
    return f"""
env {SERVER} bash -c {server!r} & server=$!
env {TRAINER} bash -c {trainer!r} & trainer=$!
for pid in $trainer $server; do
    wait -n $trainer $server; code=$?
    [ $code = 0 ] || {{ kill $trainer $server 2>/dev/null; exit $code; }}
done
"""


def test_servers_end_on_request_after_the_trainers(bench, wait):
    job = bench.job(launcher("sleep 300; true", "sleep 1; true"), trainers=1, peers=("10.77.0.1",))
    bench.call("start", job)
    wait(lambda: bench.call("poll", job)["heartbeat"].get("trained"), "the end of the trainer")
    assert bench.call("poll", job)["state"] == "running"
    bench.call("finish", job)
    record = bench.ended(job)
    assert record.ok
    assert (record.servers_finished, record.killed, record.servers) == (1, 0, ())
    assert record.message == "1 parameter server ended after all trainers had succeeded"
    assert bench.ours() == []


def test_a_watcher_receives_the_end_of_the_trainers_once(bench, wait):
    job = bench.job(launcher("sleep 300; true", "sleep 1; true"), trainers=1, peers=("10.77.0.1",))
    bench.call("start", job)
    wait(lambda: bench.call("poll", job)["heartbeat"].get("trained"), "the end of the trainer")
    watch = bench.popen("watch", job, "--for", "2.5")
    lines = watch.stdout.read().splitlines()
    assert sum(b'"event": "trained"' in line for line in lines) == 1
    bench.call("finish", job)
    assert bench.ended(job).ok


def test_servers_of_a_single_node_end_without_a_controller(bench):
    record = bench.end_of(launcher("sleep 300; true", "sleep 1; true"), trainers=1)
    assert (record.ok, record.servers_finished) == (True, 1)


def test_a_request_before_the_end_of_the_trainers_ends_nothing(bench):
    job = bench.job(launcher("sleep 300; true", "sleep 3; touch trained"), trainers=1, peers=("10.77.0.1",))
    job.mkdir(exist_ok=True)
    (job / "finish").touch()
    bench.call("start", job)
    assert bench.ended(job).ok
    assert (bench.root / "trained").exists()


def test_servers_that_have_exited_are_not_ended(bench):
    record = bench.end_of(launcher("sleep 1.5; true", "sleep 1; true"), trainers=1, peers=("10.77.0.1",))
    assert (record.ok, record.servers_finished) == (True, 0)
    # A launcher that is faster than the runner leaves no exit code.
    assert [end.rank for end in record.servers] in ([1], [])
    assert not any(end.exit_code or end.signal for end in record.servers)


@pytest.mark.parametrize(
    ("server", "trainer", "servers", "ranks"),
    [
        ("sleep 1; kill -9 $$", "sleep 300; true", [(1, 9)], []),
        ("sleep 300; true", "sleep 1; kill -9 $$", [], [(1, 9)]),
    ],
)
def test_a_process_that_dies_is_the_first_in_the_record(
    bench, server: str, trainer: str, servers: list[tuple[int, int]], ranks: list[tuple[int, int]]
):
    record = bench.end_of(launcher(server, trainer), trainers=1, peers=("10.77.0.1",))
    assert (record.reason, record.exit_code) == (EndReason.EXITED, 137)
    assert record.servers_finished == 0
    assert [(end.rank, end.signal) for end in record.servers if end.signal == 9] in (servers, [])
    assert [(end.rank, end.signal) for end in record.ranks if end.signal == 9] in (ranks, [])
