"""Probes whether a node's container is usable, with a stand-in engine and the command that a real node gets."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tipcflow.domain import Container, FailureClass, InfraError, Node
from tipcflow.domain.run.names import JobId
from tipcflow.execute.node.containers import container_name, usable_image
from tipcflow.transport import Completed

GOLDEN = Path(__file__).parents[3] / "golden" / "execute" / "containers.txt"
FINE = {
    "version": "echo 20.10",
    "image": "echo sha256:0123456789abcdef0123456789",
    "pull": "exit 1",
    "run": "exit 0",
}
# In the order of the probes; the id is queried a second time at the end.
TROUBLES: dict[str, dict[str, str]] = {
    "no daemon": {"version": "echo client; echo Cannot connect to the Docker daemon; exit 1"},
    "no image": {"image": "exit 1"},
    "no pull": {"image": "exit 1", "pull": "echo pull access denied for paddle >&2; exit 1"},
    "wrong arguments": {"run": "echo unknown flag: --gpu; echo See docker run --help.; exit 125"},
    "no interpreter": {"run": "exit 1"},
}


class Here:
    """The node is this machine."""

    def run(self, command: str, *, input: bytes | None = None, timeout: float = 60.0) -> Completed:  # noqa: A002
        done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=timeout, check=False)
        return Completed(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def node(tmp_path: Path) -> Callable[..., Node]:
    """`node({"run": "exit 1"}, pull=True)`: a node whose engine responds with these codes."""

    def make(answers: dict[str, str] | None = None, *, pull: bool = False) -> Node:
        cases = "\n".join(f"{word}) {answer} ;;" for word, answer in {**FINE, **(answers or {})}.items())
        engine = tmp_path / "docker"
        engine.write_text(
            f'#!/bin/sh\nprintf "%s " "$@" >> "$0.said"; echo >> "$0.said"\ncase $1 in\n{cases}\nesac\n'
        )
        engine.chmod(0o755)
        container = Container(
            image="paddle:2.6", python="/opt/py/bin/python3", args=("--gpus", "all"), engine=str(engine), pull=pull
        )
        return Node(
            name="a", address="10.0.0.1", python="/usr/bin/python3", workspace="/srv/t", container=container
        )

    return make


def look(node: Node) -> str:
    return usable_image(Here(), node)  # type: ignore[arg-type]


def test_existing_image_is_reported_with_its_id(node: Callable[..., Node], tmp_path: Path) -> None:
    assert look(node()) == "paddle:2.6 (sha256:0123456789ab)"
    result = (tmp_path / "docker.said").read_text()
    assert "run --rm --init --net=host -v /srv/t:/srv/t --gpus all paddle:2.6 bash -c" in result
    assert "pull" not in result


def test_a_node_without_a_container_is_not_probed() -> None:
    assert look(Node(name="a", address="10.0.0.1", python="/usr/bin/python3", workspace="/srv/t")) == ""


def test_container_probe_reports_the_trouble_and_the_command(node: Callable[..., Node], tmp_path: Path) -> None:
    lines = []
    for what, answers in TROUBLES.items():
        with pytest.raises(InfraError) as caught:
            look(node(answers, pull=what == "no pull"))
        assert caught.value.node == "a"
        kind = FailureClass.ENVIRONMENT if what == "no interpreter" else None
        assert caught.value.failure_class is kind
        lines.append(f"# {what}\n{caught.value}\n")
    made = node()
    (tmp_path / "docker").unlink()
    with pytest.raises(InfraError) as caught:
        look(made)
    lines.append(f"# no engine\n{caught.value}\n")
    assert "\n".join(lines).replace(f"{tmp_path}/", "") == GOLDEN.read_text()


def test_an_image_is_pulled_where_that_is_allowed(node: Callable[..., Node], tmp_path: Path) -> None:
    there = tmp_path / "there"
    answers = {"image": f"[ -e {there} ] && echo sha256:fedcba9876543210", "pull": f"touch {there}"}
    assert look(node(answers, pull=True)) == "paddle:2.6 (sha256:fedcba987654)"
    assert "pull -q paddle:2.6" in (tmp_path / "docker.said").read_text()


def test_a_container_is_named_after_its_job_and_node(node: Callable[..., Node]) -> None:
    one = node()
    other = one.model_copy(update={"name": "b"})
    job = JobId("20261121t1-m-1a2b", "norm_train_gpus_0,1/train", 1)
    names = {container_name(one, job), container_name(other, job), container_name(one, replace(job, attempt=2))}
    assert len(names) == 3
    assert container_name(one, job) == container_name(one, job)
    assert all(name.replace("_", "").replace("-", "").replace(".", "").isalnum() for name in names)
    assert all(len(name) < 110 and name.startswith("tipcflow-20261121t1-m-1a2b_norm") for name in names)
    assert len(container_name(one, replace(job, step="x" * 1000))) < 110
