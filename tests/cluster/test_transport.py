"""The runner on real nodes over real ssh: gangs, cut links, dead sshds, reboots; nothing is left behind."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.programs import missing

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import InfraError, JobCommand, JobSpec, Node, StoppedBy
from tipcflow.remote import commands, paths
from tipcflow.remote.bundle import runner_bytes
from tipcflow.transport import Transport
from tipcflow.transport.connect import connect

pytestmark = pytest.mark.cluster

WAIT_S = 60.0


class Controller:
    """What a controller does with one node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.transport: Transport = connect(node)
        assert self.transport.run(commands.make_workspace(node)).exit_code == 0
        self.transport.put(runner_bytes(), paths.runner_path(node))
        self.transport.run(f"mkdir -p {paths.run_root(node, 'r1')}")

    def call(self, command: str) -> dict[str, Any]:
        """The JSON that a command prints."""
        done = self.transport.run(command)
        assert done.exit_code == 0, done.stderr.decode()
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    def job(self, text: str, step: str, **values: Any) -> str:
        """A job folder with this command."""
        node = self.node
        spec = JobSpec(
            run="r1",
            step=step,
            node=node.name,
            fence=time.time_ns() // 1_000_000,  # as the store's: other tests' runs used these slots
            slots=(0,),
            workspace=node.workspace,
            root=paths.run_root(node, "r1"),
            commands=(JobCommand(text=text, cwd="."),),
            kill_after_s=1.0,
            min_free_bytes=0,
            **values,
        )
        self.transport.put(spec.model_dump_json().encode(), paths.job_file(spec))
        return paths.job_dir(node, "r1", step, 1)

    def events(self, job: str, resume: dict[str, int] | None = None) -> Iterator[dict[str, Any]]:
        """The events of a watch."""
        command = commands.watch(self.node, job, seconds=WAIT_S, resume=resume)
        with self.transport.stream(command, timeout=5.0) as lines:
            for line in lines:
                yield json.loads(line)

    def end(self, job: str) -> dict[str, Any]:
        """The exit record."""
        last = list(self.events(job))[-1]
        assert last["event"] == "end", last
        record: dict[str, Any] = last["record"]
        return record


@pytest.fixture
def two(nodes: LocalNodes) -> Iterator[list[Controller]]:
    """A controller's hands on both nodes; nothing may be left on them at the end."""
    made = [Controller(node) for node in nodes.cluster.nodes]
    yield made
    for one in made:
        one.transport.close()
    for node in nodes.cluster.nodes:
        until(lambda node=node: not ours(nodes, node), "nothing of ours on the node")
        nodes.exec(node.name, ["rm", "-rf", node.workspace + "/jobs", node.workspace + "/runs"])


def ours(nodes: LocalNodes, node: Node) -> list[str]:
    """Command lines of the node's processes that are not the system's."""
    return [process.cmdline for process in nodes.processes(node.name)]


def until(condition: Callable[[], Any], what: str) -> Any:
    """The first true value."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    pytest.fail(f"waited for {what}")


def test_a_gang_starts_together_and_is_stopped_together(two: list[Controller]) -> None:
    jobs = [one.job("date +%s.%N; sleep 300", "gang", barrier=True) for one in two]
    for one, job in zip(two, jobs, strict=True):
        assert one.call(commands.start(one.node, job))["state"] == "staged"
    for one, job in zip(two, jobs, strict=True):
        one.call(commands.go(one.node, job))
    began = []
    for one, job in zip(two, jobs, strict=True):
        log = next(event for event in one.events(job) if event["event"] == "log")
        began.append(float(log["data"]))
    assert abs(began[0] - began[1]) < 1.0
    for one, job in zip(two, jobs, strict=True):
        one.call(commands.stop(one.node, job, "a peer failed", StoppedBy.PEER))
        assert one.end(job)["reason"] == "stopped"


@pytest.mark.full
def test_a_job_survives_its_sshd_and_is_watched_on(nodes: LocalNodes, two: list[Controller]) -> None:
    one = two[0]
    job = one.job("for i in 1 2 3 4 5 6 7 8 9; do echo line $i; sleep 0.3; done", "sshd")
    one.call(commands.start(one.node, job))
    events = one.events(job)
    first = next(event for event in events if event["event"] == "log")
    nodes.kill_sshd("a")
    with pytest.raises(InfraError, match="node a: "):
        list(events)
    nodes.start_sshd("a")
    one.transport.close()
    one.transport = connect(one.node)
    rest = list(one.events(job, {"": first["size"]}))
    text = first["data"] + "".join(event["data"] for event in rest if event["event"] == "log")
    assert text == "".join(f"line {i}\n" for i in range(1, 10))
    assert rest[-1]["record"]["exit_code"] == 0


@pytest.mark.full
def test_a_cut_link_is_noticed_and_the_job_continues(nodes: LocalNodes, two: list[Controller]) -> None:
    if nodes.kind != "namespaces":
        missing("a cut link needs network namespaces, that is, root")
    one = two[0]
    job = one.job("sleep 3; echo done", "cut")
    one.call(commands.start(one.node, job))
    events = one.events(job)
    next(events)
    nodes.cut("a")
    with pytest.raises(InfraError, match="no response within 5 s"):
        list(events)
    with pytest.raises(InfraError, match=r"node a: .*does not respond"):
        connect(one.node, timeout=1.0)
    nodes.restore("a")
    one.transport.close()
    one.transport = connect(one.node)
    assert one.end(job)["exit_code"] == 0


@pytest.mark.full
def test_a_rebooted_node_has_lost_its_job(make_nodes: Callable[..., LocalNodes]) -> None:
    nodes = make_nodes(names=("a",))
    one = Controller(nodes.cluster.node("a"))
    job = one.job("sleep 300", "reboot")
    one.call(commands.start(one.node, job))
    nodes.reboot("a")
    one.transport.close()
    one.transport = connect(one.node)
    assert one.call(commands.poll(one.node, job))["state"] == "lost"
    assert list(one.events(job))[-1] == {"event": "lost"}
    assert one.call(commands.start(one.node, job))["state"] == "lost"
    assert one.call(commands.list_ours(one.node))["processes"] == []
    one.transport.close()


def test_a_reinstalled_node_is_not_trusted(make_nodes: Callable[..., LocalNodes]) -> None:
    nodes = make_nodes(names=("a",))
    nodes.change_host_key("a")
    with pytest.raises(InfraError, match=r"node a: the host key of .* has changed"):
        connect(nodes.cluster.node("a"))


def test_nodes_reach_each_other_or_report_the_reason(nodes: LocalNodes, two: list[Controller]) -> None:
    one, other = two
    address = f"{other.node.address}:{other.node.ssh.port or 22}"
    report = one.call(commands.facts(one.node, {"b": address}))
    assert report["unreachable"] == {}
    if nodes.kind == "namespaces":
        nodes.cut("b")
        report = one.call(commands.facts(one.node, {"b": address}))
        nodes.restore("b")
        assert other.node.address in report["unreachable"]["b"]
