"""Local nodes whose owner is interrupted or killed: nothing is left, or the next start removes it."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.local_nodes import processes, state
from devcluster.local_nodes.nodes import local_nodes

pytestmark = pytest.mark.cluster

OWNER = """
import sys, time
from pathlib import Path
from tipcflow.entry import exit_on_interrupt
with exit_on_interrupt():  # as the command line does: pydantic swallows a KeyboardInterrupt of its imports
    from devcluster.local_nodes.nodes import local_nodes
with local_nodes(Path(sys.argv[1]), mode=sys.argv[2], report=print) as nodes:
    nodes.exec("a", ["sh", "-c", "setsid sleep 99 >/dev/null 2>&1 </dev/null &"])
    print("up", flush=True)
    time.sleep(60)
"""
DEADLINE_S = 60.0


def traces(home: Path) -> dict[str, object]:
    """All that local nodes of that home may leave on this machine."""
    folder = str(home)
    found = [
        member.pid
        for member in processes.everything()
        if not member.ended and (folder in _text(f"/proc/{member.pid}/cmdline"))
    ]
    ids = {entry.stem for entry in state.registry().glob("*.instance") if folder in entry.read_text()}
    ids |= {path.name for path in (home / "nodes").glob("*")}
    links = {link["ifname"] for link in json.loads(subprocess.check_output(["ip", "-j", "link"]))}
    return {
        "processes": [_text(f"/proc/{pid}/cmdline") for pid in found],
        "marked": [pid for identity in ids for pid in processes.marked(f"TIPCFLOW_LOCAL_NODE={identity}/")],
        "links": sorted(link for link in links if any(link.startswith(f"tf{identity}") for identity in ids)),
        "mounts": [line for line in _text("/proc/mounts").splitlines() if folder in line],
        "folders": sorted(ids),
    }


NOTHING: dict[str, object] = {"processes": [], "marked": [], "links": [], "mounts": [], "folders": []}


def _text(path: str) -> str:
    try:
        return Path(path).read_text().replace("\0", " ")
    except OSError:
        return ""


def without(found: dict[str, object], *keys: str) -> dict[str, object]:
    return {key: ([] if key in keys else value) for key, value in found.items()}


@pytest.fixture
def owners(tmp_path: Path) -> Iterator["Owners"]:
    made = Owners(tmp_path / "home")
    yield made
    made.end()


class Owners:
    """Starts processes that make nodes."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._started: list[subprocess.Popen[str]] = []

    def start(self, mode: str, *, wait: bool = False) -> "subprocess.Popen[str]":
        argv = [sys.executable, "-c", OWNER, str(self.home), mode]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self._started.append(process)
        if wait:
            assert process.stdout is not None
            while (line := process.stdout.readline()) and line != "up\n":
                pass
            assert line, "the owner ended before its nodes were up"
        return process

    def end(self) -> None:
        for process in self._started:
            process.kill()
            process.communicate()


def settle(home: Path, expected: dict[str, object], *, ignore: tuple[str, ...] = ()) -> None:
    """A killed owner's nodes end by themselves, though not in the same instant."""
    deadline = time.monotonic() + DEADLINE_S
    while without(traces(home), *ignore) != expected and time.monotonic() < deadline:
        time.sleep(0.02)
    assert without(traces(home), *ignore) == expected


def interrupt_at(owners: Owners, mode: str, number: int, delay: float, *, twice: bool) -> None:
    process = owners.start(mode)
    time.sleep(delay)  # the moment is what is tested
    process.send_signal(number)
    if twice:
        process.send_signal(number)
    output = process.communicate(timeout=DEADLINE_S)[0]
    assert process.returncode != 0
    assert traces(owners.home) == NOTHING, f"after {delay:.3f} s: {output}"


def moments(count: int, seed: int) -> list[float]:
    return [random.Random(f"{seed}/{index}").uniform(0.05, 1.2) for index in range(count)]


@pytest.mark.parametrize("mode", ["namespaces", "loopback"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_while_nodes_are_up_leaves_nothing(owners: Owners, mode: str, number: signal.Signals) -> None:
    process = owners.start(mode, wait=True)
    assert traces(owners.home) != NOTHING
    process.send_signal(number)
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode not in (0, -signal.SIGKILL)
    assert traces(owners.home) == NOTHING


@pytest.mark.parametrize("mode", ["namespaces", "loopback"])
def test_signals_at_random_times_leave_nothing(owners: Owners, mode: str) -> None:
    for index, delay in enumerate(moments(8, 1)):
        number = (signal.SIGINT, signal.SIGTERM)[index % 2]
        interrupt_at(owners, mode, number, delay, twice=index % 3 == 0)


@pytest.mark.full
@pytest.mark.parametrize("mode", ["namespaces", "loopback"])
def test_signals_at_many_moments_leave_nothing(owners: Owners, mode: str) -> None:
    for index, delay in enumerate(moments(60, 2)):
        number = (signal.SIGINT, signal.SIGTERM)[index % 2]
        interrupt_at(owners, mode, number, delay, twice=index % 3 == 0)


@pytest.mark.parametrize("mode", ["namespaces", "loopback"])
def test_sigkill_ends_all_processes_and_the_next_start_removes_the_rest(owners: Owners, mode: str) -> None:
    process = owners.start(mode, wait=True)
    process.kill()
    process.communicate(timeout=DEADLINE_S)
    # Without anybody's help: no process survives its owner.
    settle(owners.home, NOTHING, ignore=("links", "folders"))
    messages: list[str] = []
    with local_nodes(owners.home, mode=mode, report=messages.append):  # type: ignore[arg-type]
        pass
    assert len(messages) == 1
    assert messages[0].startswith(f"removed what a killed process (pid {process.pid}) left behind: local nodes ")
    assert traces(owners.home) == NOTHING


@pytest.mark.parametrize("mode", ["namespaces", "loopback"])
def test_sigkill_at_random_times_is_repaired_by_the_next_start(owners: Owners, mode: str) -> None:
    for delay in moments(6, 3):
        process = owners.start(mode)
        time.sleep(delay)  # the moment is what is tested
        process.kill()
        process.communicate(timeout=DEADLINE_S)
    with local_nodes(owners.home, mode=mode) as nodes:  # type: ignore[arg-type]
        assert [path.name for path in (owners.home / "nodes").iterdir()] == [nodes.folder.name]
    settle(owners.home, NOTHING)


def test_next_start_leaves_a_running_demo_of_the_same_home_alone(owners: Owners) -> None:
    living = owners.start("namespaces", wait=True)
    before = traces(owners.home)
    messages: list[str] = []
    with local_nodes(owners.home, report=messages.append):
        pass
    assert messages == []
    assert living.poll() is None
    assert traces(owners.home) == before


def test_a_pid_that_meanwhile_belongs_to_another_process_is_not_killed(tmp_path: Path) -> None:
    bystander = subprocess.Popen(["sleep", "60"])
    try:
        processes.kill_if_same(bystander.pid, processes.start_time(bystander.pid) - 1)
        assert bystander.poll() is None
        processes.kill_if_same(bystander.pid, processes.start_time(bystander.pid))
        assert bystander.wait(DEADLINE_S) == -signal.SIGKILL
    finally:
        bystander.kill()
        bystander.wait()


def test_leftovers_of_another_home_are_found_through_the_registry(owners: Owners, tmp_path: Path) -> None:
    process = owners.start("namespaces", wait=True)
    process.kill()
    process.communicate(timeout=DEADLINE_S)
    with local_nodes(tmp_path / "other"):
        pass
    assert list((owners.home / "nodes").iterdir()) == []
    settle(owners.home, NOTHING)
