"""One Airflow per home; what a killed owner left is ended, and nothing else."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devcluster.airflow import state as states
from devcluster.local_nodes import processes
from tipcflow.domain import InfraError

pytestmark = pytest.mark.process


@pytest.fixture
def sleeper() -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    made = []

    def make(**env: str) -> "subprocess.Popen[bytes]":
        made.append(subprocess.Popen(["sleep", "99"], env=os.environ | env))
        return made[-1]

    yield make
    for process in made:
        process.kill()
        process.wait()


def test_a_second_owner_gets_the_name_of_the_first(tmp_path: Path) -> None:
    first = states.Ownership(tmp_path)
    states.new_state("http://127.0.0.1:8123").save(tmp_path)
    with pytest.raises(InfraError, match=f"already running by process {os.getpid()}, at http://127.0.0.1:8123"):
        states.Ownership(tmp_path)
    first.release()
    states.Ownership(tmp_path).release()


def test_leftovers_are_ended_and_others_are_not(
    tmp_path: Path, sleeper: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    state = states.new_state("")
    left = sleeper(**dict([state.marker.split("=")]))
    keeper = sleeper()
    other = sleeper(**dict([states.new_state("").marker.split("=")]))
    state.owner, state.keeper = (1, 1), (keeper.pid, processes.start_time(keeper.pid) - 1)  # a pid used again
    state.save(tmp_path)
    messages: list[str] = []
    states.remove_leftovers(tmp_path, messages.append)
    assert messages == ["ended the Airflow that a killed process (pid 1) left behind"]
    assert left.wait(10) == -9
    assert (keeper.poll(), other.poll()) == (None, None)
    assert not (tmp_path / "stack.json").exists()
    states.remove_leftovers(tmp_path, messages.append)
    assert len(messages) == 1


@pytest.mark.parametrize("text", ["", "{half", '{"id": "x"}', "[]"])
def test_a_spoilt_state_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "stack.json").write_text(text)
    assert states.read_state(tmp_path) is None
    states.remove_leftovers(tmp_path, lambda _: None)
