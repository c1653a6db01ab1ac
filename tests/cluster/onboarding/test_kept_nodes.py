"""`tipcflow local up`, `status` and `local down`: nodes that stay, and of which `down` leaves nothing."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.certify import wait_for
from tests.support.stories import a_run

from devcluster.keep.record import Record, read
from devcluster.local_nodes import processes, state
from tipcflow.config.cluster import load_cluster
from tipcflow.execute.node.session import NodeSession
from tipcflow.store import Store

pytestmark = pytest.mark.cluster
PROGRAM = str(Path(sys.executable).with_name("tipcflow"))
Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def environ(home: Path, tmp_path: Path) -> dict[str, str]:
    configs = tmp_path / "configs"
    (configs / "clusters").mkdir(parents=True)
    return os.environ | {
        "TIPCFLOW_HOME": str(home),
        "TIPCFLOW_CONFIG_DIR": str(configs),
        "TIPCFLOW_DATABASE_URL": "",
    }


@pytest.fixture
def tipcflow(command: Command) -> Iterator[Command]:
    yield command
    command("local", "down", "--force")


def up(tipcflow: Command, *options: str) -> subprocess.CompletedProcess[str]:
    done = tipcflow("local", "up", "--python", sys.executable, *options)
    assert done.returncode == 0, done.stderr
    return done


def kept(home: Path) -> Record:
    record = read(home, "nodes")
    assert record is not None
    return record


def rows(tipcflow: Command, home: Path) -> list[dict[str, object]]:
    """What `status` reports about this home; other tests may have nodes too."""
    found = json.loads(tipcflow("status", "--json").stdout)["services"]
    return [
        one for one in found if str(home.parent) in str(one) or one["note"].startswith(("process ", "its process"))
    ]


def links(identity: str) -> list[str]:
    found = json.loads(subprocess.check_output(["ip", "-j", "link"]))
    return [link["ifname"] for link in found if link["ifname"].startswith(f"tf{identity}")]


def nothing_is_left(home: Path, identity: str, configs: Path) -> None:
    assert processes.marked(f"TIPCFLOW_LOCAL_NODE={identity}/") == []
    assert links(identity) == []
    assert not (home / "local").exists()
    assert list((home / "nodes").iterdir()) == []
    assert not (state.registry() / f"{identity}.instance").exists()
    assert list((configs / "clusters").iterdir()) == []


@pytest.mark.parametrize("kind", ["namespaces", "loopback"])
def test_nodes_stay_after_the_command_and_down_leaves_nothing(
    tipcflow: Command, home: Path, tmp_path: Path, kind: str
) -> None:
    done = up(tipcflow, "--nodes", "3", "--kind", kind)
    assert done.stdout.startswith("3 nodes, a, b and c: ")
    cluster = load_cluster("local", tmp_path / "configs")
    assert [node.name for node in cluster.nodes] == ["a", "b", "c"]
    for node in cluster.nodes:
        session = NodeSession(node)
        session.prepare()
        session.close()
    (row,) = [row for row in rows(tipcflow, home) if "c " in str(row["where"])]
    assert (row["what"], row["condition"]) == ("local nodes", "running")
    identity = Path(kept(home).facts["folder"]).name
    ended = tipcflow("local", "down")
    assert (ended.returncode, ended.stderr) == (0, "local nodes are stopped\n")
    nothing_is_left(home, identity, tmp_path / "configs")
    assert tipcflow("local", "down").stderr == "no local nodes are running\n"


def test_a_second_up_is_refused_and_harms_nothing(tipcflow: Command, home: Path) -> None:
    up(tipcflow)
    before = kept(home)
    again = tipcflow("local", "up", "--python", sys.executable)
    assert again.returncode == 2
    assert "local nodes are already running" in again.stderr
    assert "`tipcflow local down` ends it" in again.stderr
    assert kept(home) == before
    assert before.condition == "running"


def test_a_killed_keeper_is_stale_and_down_removes_its_leftovers(
    tipcflow: Command, home: Path, tmp_path: Path
) -> None:
    up(tipcflow)
    record = kept(home)
    os.kill(record.pid, signal.SIGKILL)
    wait_for(lambda: not record.alive, what="the end of the keeper")
    done = tipcflow("status")
    assert done.returncode == 5
    assert (
        f"its process {record.pid} was killed, or the machine was restarted: `tipcflow local down`" in done.stdout
    )
    assert tipcflow("local", "down").returncode == 0
    nothing_is_left(home, Path(record.facts["folder"]).name, tmp_path / "configs")


def test_up_replaces_the_leftovers_of_a_killed_keeper(tipcflow: Command, home: Path) -> None:
    up(tipcflow)
    first = kept(home)
    os.kill(first.pid, signal.SIGKILL)
    wait_for(lambda: not first.alive, what="the end of the keeper")
    done = up(tipcflow, "--nodes", "1")
    assert f"removed what a killed process (pid {first.pid}) left behind" in done.stderr
    assert kept(home).condition == "running"


def test_a_node_that_ends_is_reported_with_its_name(tipcflow: Command, home: Path) -> None:
    up(tipcflow, "--kind", "loopback")
    record = kept(home)
    killed = [pid for pid in processes.children(record.pid) if _is_init_of(pid, "b")]
    os.kill(killed[0], signal.SIGKILL)
    wait_for(lambda: kept(home).condition == "failed", what="the report")
    done = tipcflow("status")
    assert done.returncode == 5
    assert "the first process of node b ended" in done.stdout
    assert tipcflow("local", "down").returncode == 0


def _is_init_of(pid: int, name: str) -> bool:
    return f"/{name}/init.json" in Path(f"/proc/{pid}/cmdline").read_text()


def test_down_refuses_while_a_run_holds_a_node(tipcflow: Command, home: Path, tmp_path: Path) -> None:
    up(tipcflow)
    address = load_cluster("local", tmp_path / "configs").nodes[0].address
    with Store.open(f"sqlite:///{home}/tipcflow.db") as store:
        store.runs.create(a_run("r1"))
        store.leases.acquire("r1", [(address, 0)], owner="test", ttl_s=600)
    refused = tipcflow("local", "down")
    assert refused.returncode == 2
    assert refused.stderr == (
        "config_error: the local nodes are in use; found 'r1'; expected no run in progress\n"
        "  hint: wait for the end of the runs, stop them, or use --force\n"
    )
    assert kept(home).condition == "running"
    assert tipcflow("local", "down", "--force").returncode == 0


def test_a_users_own_cluster_local_is_kept(tipcflow: Command, tmp_path: Path) -> None:
    own = tmp_path / "configs" / "clusters" / "local.yaml"
    own.write_text("name: local\nnodes: []\n")
    done = tipcflow("local", "up", "--python", sys.executable)
    assert done.returncode == 2
    assert f"{own}: this cluster was not written by `tipcflow local up`, so it is kept" in done.stderr
    tipcflow("local", "down")
    assert own.read_text() == "name: local\nnodes: []\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--kind", "docker"), "--kind: unknown kind; found 'docker'; expected namespaces or loopback"),
        (("--python", "/nowhere/python"), "--python: no such interpreter; found '/nowhere/python'"),
        (("--suite", "nope"), "--suite: unknown suite; found 'nope'"),
    ],
)
def test_bad_options_are_one_message(tipcflow: Command, home: Path, options: tuple[str, ...], words: str) -> None:
    done = tipcflow("local", "up", *options)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (home / "local").exists()


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, *(pytest.param(number, marks=pytest.mark.full) for number in (signal.SIGTERM, signal.SIGHUP))],
    ids=lambda number: number.name,
)
def test_an_interrupted_up_leaves_nothing(
    environ: dict[str, str], home: Path, tmp_path: Path, number: signal.Signals
) -> None:
    argv = [PROGRAM, "local", "up", "--python", sys.executable, "--nodes", "8"]
    process = subprocess.Popen(argv, env=environ, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_for(lambda: any((home / "nodes").glob("*/state.json")), what="the first nodes")
    process.send_signal(number)
    result = process.communicate(timeout=60)[1]
    assert process.returncode == 3, result
    assert result.endswith(f"stopped by {number.name}; the nodes are removed\n")
    assert list((home / "nodes").iterdir()) == []
    assert list((tmp_path / "configs" / "clusters").iterdir()) == []
    assert read(home, "nodes") is None
