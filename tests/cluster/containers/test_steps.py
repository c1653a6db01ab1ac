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
from tests.support.certify import Site
from tests.support.containers import engine
from tests.support.framework.wheels import make_wheel, sha256_of

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


PREPARE = """#!/bin/bash
set -eu
python - <<'PY'
import os, sysconfig, toyneed
open(os.path.join(sysconfig.get_paths()["purelib"], "made_by_prepare.py"), "w").write("answer = 42")
print("package", toyneed.word)
PY
python -c 'import made_by_prepare, helper_of_suite; print("answer", made_by_prepare.answer, helper_of_suite.word)'
echo "flag $TOY_FLAG, place $TOY_PLACE, data $(cat dataset/val.txt), in $(cat /etc/marker)"
mkdir -p images
for i in 0 1 2; do echo "$i" > "images/$i.png"; done
"""


def test_needs_of_a_suite_are_met_inside(
    docker: Path, make_nodes: Callable[..., LocalNodes], tmp_path: Path
) -> None:
    """The packages, the data and the run's environment come from a cache outside of the workspace."""
    site = Site(tmp_path, make_nodes(names=("a",), mode="loopback"))
    shared = tmp_path / "shared"
    make_wheel(shared, "toyneed", text="installed")
    (shared / "val.txt").write_text("one image")
    with tarfile.open(shared / "data.tar", "w") as tar:
        tar.add(shared / "val.txt", arcname="val.txt")
    mounts = [*engine.ARGS, "-v", f"{shared}:{shared}:ro"]
    box = {"image": engine.IMAGE, "engine": str(docker), "python": engine.PYTHON, "args": mounts}
    pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(shared)}
    site.configure_node("a", container=box, cache=str(tmp_path / "cache"), env=pip)
    (site.suite / "test_tipc" / "prepare.sh").write_text(PREPARE)
    (site.suite / "deploy" / "helper_of_suite.py").write_text("word = 'imported'")
    site.edit_params("gpu_list:192.168.0.1,192.168.0.2;0,1", "gpu_list:0")
    site.configure_suite(
        env={"TOY_FLAG": 7, "TOY_PLACE": "{root}/dataset"},
        pythonpath=["deploy"],
        packages=["toyneed==1.0"],
        data=[{"to": "dataset", "path": str(shared / "data.tar"), "sha256": sha256_of(shared / "data.tar")}],
    )
    workspace = site.nodes.cluster.nodes[0].workspace
    for words in ("toyneed", "in the cache"):
        outcome = site.run()
        assert outcome.code == 0, outcome.output
        logs = [path.read_text() for path in (site.home / "runs" / outcome.run.id).rglob("main.log")]
        for expected in (
            "package installed",
            "answer 42 imported",
            f"flag 7, place {workspace}/runs/{outcome.run.id}/src/dataset, data one image",
            f"in {engine.MARKER}",
            words,
        ):
            assert any(expected in log for log in logs), (expected, logs)
    assert site.left_behind() == []
