"""Steps in containers of a real engine: they run, are measured, and end with their container, whatever happens."""

import hashlib
import io
import posixpath
import shlex
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import engine

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Command, Compat, Container, InfraError, JobSpec, Plan, Step, StepKind, StoppedBy
from tipcflow.execute.job.spec import job_spec
from tipcflow.execute.node.session import NodeSession
from tipcflow.plan.spec.container import container_words
from tipcflow.remote import paths

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.full,
    pytest.mark.skipif(bool(engine.missing()), reason=engine.missing()),
]
# Neither ends on SIGTERM, and one carries none of the runner's marks.
STUBBORN = "trap '' TERM; echo up; (trap '' TERM; exec env -i /bin/sleep 600) & sleep 600"


@pytest.fixture(scope="module")
def docker() -> Iterator[Path]:
    with engine.real_engine() as made:
        yield made


@pytest.fixture
def session(docker: Path, make_nodes: Callable[..., LocalNodes]) -> Iterator[NodeSession]:
    """A node whose steps run in the image, with an empty suite."""
    (node,) = make_nodes(names=("a",), mode="loopback").cluster.nodes
    box = Container(image=engine.IMAGE, args=engine.ARGS, engine=str(docker), python=engine.PYTHON)
    made = NodeSession(node.model_copy(update={"container": box, "env": {"COLOUR": "green"}}))
    made.prepare()
    archive = io.BytesIO()
    tarfile.open(fileobj=archive, mode="w:gz").close()
    made.deploy("r", archive.getvalue(), hashlib.sha256(archive.getvalue()).hexdigest())
    yield made
    made.close()


def containers(docker: Path) -> list[str]:
    words = [docker, "ps", "-a", "--format", "{{.Names}}"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()


def started(session: NodeSession, text: str, step: str, *, hang_s: float = 0.0) -> JobSpec:
    node = session.node
    command = Command(text=text, env={"SHADE": ""})
    command = command.model_copy(update={"container": container_words(node, command)})
    made = Step(id=step, kind=StepKind.TRAIN, nodes=("a",), commands={"a": command})
    plan = Plan(
        chain="c", suite="s", dialect="d", model="m", params_file="p", params_sha256="0", mode="whole_infer",
        compat=Compat.SPEC, steps=(made,),
    )  # fmt: skip
    spec = job_spec(plan, made, node, run="r", attempt=1, fence=1, hang_s=hang_s)
    session.start(spec)
    return spec


def until(condition: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + engine.WAIT_S
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.1)
    pytest.fail(f"waited {engine.WAIT_S:g} s for {what}")


def ended(session: NodeSession, spec: JobSpec) -> dict[str, Any]:
    return until(lambda: session.poll(spec)["record"], "the job's end")


def log(session: NodeSession, spec: JobSpec) -> str:
    """What its command has printed."""
    place = shlex.quote(f"{posixpath.dirname(paths.job_file(spec))}/logs/main.log")
    return session.call(f"cat {place}", "show the log").decode()


def test_facts_come_from_inside(session: NodeSession) -> None:
    facts = session.facts({})
    assert facts.container.startswith(f"{engine.IMAGE} (sha256:")
    assert facts.python
    assert not facts.unfinished


def test_a_step_runs_inside_with_log_environment_and_exit_code(session: NodeSession, docker: Path) -> None:
    text = "cat /etc/marker; echo; python -c 'import os; print(os.getcwd())'; env; touch made-$COLOUR; exit 7"
    spec = started(session, text, "code")
    assert ended(session, spec)["exit_code"] == 7
    result = log(session, spec)
    assert engine.MARKER in result
    assert f"{spec.root}\n" in result
    assert "COLOUR=green\n" in result
    assert "TIPCFLOW_JOB=r/code/1\n" in result
    assert "SHADE" not in result
    assert session.call(f"ls {spec.root}", "look") == b"made-green\n"
    assert containers(docker) == []


def test_memory_is_that_of_the_processes_inside(session: NodeSession) -> None:
    spec = started(session, "python -c 'import time; held = b\"x\" * 200_000_000; time.sleep(4)'", "memory")
    assert ended(session, spec)["peak_rss_bytes"]["total"] > 200_000_000


def test_a_process_inside_that_hangs_shows_its_stack_without_py_spy(session: NodeSession) -> None:
    text = "python -c 'def stuck():\n import time\n time.sleep(600)\nprint(1, flush=True)\nstuck()'"
    spec = started(session, text, "hangs", hang_s=2.0)
    record = ended(session, spec)
    assert record["reason"] == "hang"
    seen = session.evidence(spec, 60.0)
    (python,) = [one for one in seen["processes"] if one.get("stack") and "def stuck" in one["cmdline"]]
    assert python["stack_by"] == "signal"
    assert "in stuck" in python["stack"]


def test_stop_ends_the_container(session: NodeSession, docker: Path) -> None:
    spec = started(session, STUBBORN, "stopped")
    until(lambda: session.poll(spec)["heartbeat"].get("log_size"), "its first line")
    assert containers(docker) == [spec.container]
    session.stop(spec, "stopped by a test", StoppedBy.USER)
    record = ended(session, spec)
    assert (record["reason"], record["message"]) == ("stopped", "stopped by a test")
    assert containers(docker) == []
    assert session.list_ours()["processes"] == []


def test_container_of_a_killed_runner_is_reaped(session: NodeSession, docker: Path) -> None:
    spec = started(session, STUBBORN, "killed")
    report = until(lambda: (found := session.poll(spec))["heartbeat"].get("log_size") and found, "its first line")
    session.call(f"kill -9 {report['pid']}", "kill the runner")
    until(lambda: session.poll(spec)["state"] == "lost", "the loss")
    assert containers(docker) == [spec.container]
    session.reap("r/killed/1")
    assert containers(docker) == []
    assert session.list_ours()["processes"] == []


def test_missing_image_is_named(session: NodeSession) -> None:
    box = session.node.container
    assert box is not None
    other = NodeSession(session.node.model_copy(update={"container": box.model_copy(update={"image": "no:1"})}))
    try:
        with pytest.raises(InfraError, match="image not found: no:1") as caught:
            other.facts({})
    finally:
        other.close()
    assert "pull no:1`" in caught.value.hint
