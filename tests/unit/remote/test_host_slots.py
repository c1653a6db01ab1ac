"""Two workspaces of one host: their jobs never have the same slot at the same time, for any pair of users."""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.remote.conftest import Bench

from tipcflow.domain import EndReason, Node
from tipcflow.remote.host_slots import host_key, runs_holding, short

RUN = "20261121t200000-mobilenet_v3_small_train_infer_python_and_more_words-0a1b2c3d"


@pytest.fixture
def other(bench: Bench, tmp_path: Path) -> Iterator[Bench]:
    """The same host, as another cluster file names it: with another workspace."""
    made = Bench(tmp_path / "second", bench.node.python)
    yield made
    for job in made.workspace.glob("jobs/*/*/*"):
        made.call("stop", job, "the test is over")
        made.ended(job)


@pytest.fixture
def host() -> str:
    return f"test-{secrets.token_hex(8)}"  # for tests that run at the same time, on the machine that they share


@pytest.mark.process
def test_two_workspaces_of_one_host_cannot_overlap(bench: Bench, other: Bench, host: str) -> None:
    first = bench.job("sleep 300", slots=(0, 1), host=host)
    bench.call("start", first)
    late = other.job("touch ran", run=RUN, slots=(1,), host=host)
    record = other.call("start", late)["record"]
    assert record["reason"] == EndReason.REFUSED
    assert record["message"] == "slot 1 of a is held by run r1 from another workspace of this host"
    assert not (other.root / "ran").exists()
    assert other.end_of("true", step="free", run=RUN, slots=(2,), host=host).ok, "another slot of that host"
    assert other.end_of("true", step="away", run=RUN, slots=(1,), host=f"{host}2").ok, "another host"
    bench.call("stop", first, "over")
    bench.ended(first)
    assert other.end_of("true", step="after", run=RUN, slots=(1,), host=host).ok


@pytest.mark.process
def test_a_slot_is_free_when_its_runner_is_dead(bench: Bench, other: Bench, host: str) -> None:
    first = bench.job("sleep 300", slots=(0,), host=host)
    os.kill(int(bench.call("start", first)["pid"]), 9)
    assert other.end_of("true", run=RUN, slots=(0,), host=host).ok
    bench.call("reap", bench.workspace)


@pytest.mark.process
def test_the_runs_of_other_workspaces_are_listed(bench: Bench, other: Bench, host: str) -> None:
    job = other.job("sleep 300", run=RUN, slots=(3,), host=host)
    other.call("start", job)
    listed = bench.call("list", bench.workspace)
    assert listed["jobs"] == []
    assert [one for one in listed["host"] if one["host"] == host] == [{"host": host, "slot": 3, "run": short(RUN)}]
    other.call("stop", job, "over")
    other.ended(job)
    assert not [one for one in bench.call("list", bench.workspace)["host"] if one["host"] == host]


@pytest.mark.process
def test_nodes_of_one_run_may_share_a_host(bench: Bench, other: Bench, host: str) -> None:
    first = bench.job("sleep 300", slots=(0,), host=host)
    bench.call("start", first)
    assert other.end_of("true", slots=(0,), host=host).ok
    bench.call("stop", first, "over")
    bench.ended(first)


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("10.0.0.1", "host"),
        ("gpu5.example.com", "host"),
        ("localhost", "host"),
        ("127.0.0.1", "host"),
        ("::1", "host"),
        ("127.64.3.1", "127.64.3.1"),
    ],
)
def test_addresses_of_a_host_mean_one_host_but_for_loopback_nodes(address: str, key: str) -> None:
    assert host_key(address) == key


def test_holders_of_overlapping_slots_are_found() -> None:
    node = Node(name="a", address="10.0.0.1", python="/usr/bin/python3", workspace="/w")
    listed = {
        "host": [
            {"host": "host", "slot": 0, "run": "one"},
            {"host": "host", "slot": 1, "run": "two"},
            {"host": "127.64.3.1", "slot": 0, "run": "demo"},
        ]
    }
    assert runs_holding(listed, node) == {"one", "two"}
    assert runs_holding(listed, node, [1, 2]) == {"two"}
    assert runs_holding({}, node) == set()
