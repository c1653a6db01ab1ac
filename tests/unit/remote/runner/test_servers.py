"""Parameter servers outlive the trainers, and the runner ends them when no trainer needs them."""

import pytest

from tipcflow.domain import EndReason

pytestmark = pytest.mark.process

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


def test_servers_that_end_by_themselves_are_not_ended(bench):
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
