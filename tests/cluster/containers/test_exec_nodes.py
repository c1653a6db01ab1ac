"""Nodes that are running containers of a real engine, without sshd: a chain on two of them, and one that ends."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.certify import Site
from tests.support.containers import engine

from tipcflow.domain import Status

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(bool(engine.missing()), reason=engine.missing()),
]


class Boxes:
    """Two containers with files and processes of their own, on the network of this host."""

    def __init__(self, docker: Path) -> None:
        self.docker = docker

    def start(self) -> None:
        for name in ("a", "b"):
            words = ["run", "-d", "--name", f"box-{name}", "--hostname", name, "--network=host", *engine.ARGS]
            # Programs of nodes (tar, timeout, find); the shell adopts orphans.
            words += ["-v", "/usr:/usr:ro", engine.IMAGE, "sh", "-c", "while :; do sleep 600; done"]
            subprocess.run([self.docker, *words], stdout=subprocess.DEVNULL, check=True)

    def kill(self, name: str) -> None:
        subprocess.run([self.docker, "kill", f"box-{name}"], stdout=subprocess.DEVNULL, check=True)

    def processes(self, name: str) -> str:
        words = [self.docker, "top", f"box-{name}", "-eo", "pid,args"]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    def write_cluster_file(self, path: Path) -> Path:
        nodes = [
            {
                "name": name,
                "address": f"127.0.0.{number}",
                "slots": 2,
                "python": engine.PYTHON,
                "workspace": "/tmp/tipcflow",
                "exec": {"kind": "docker", "container": f"box-{name}", "program": str(self.docker)},
            }
            for number, name in enumerate("ab", 1)
        ]
        path.write_text(yaml.safe_dump({"name": "local", "nodes": nodes}))
        return path


@pytest.fixture(scope="module")
def docker() -> Iterator[Path]:
    with engine.real_engine() as made:
        yield made


@pytest.fixture
def site(docker: Path, tmp_path: Path) -> Iterator[Site]:
    boxes = Boxes(docker)
    boxes.start()
    yield Site(tmp_path, boxes)
    subprocess.run([docker, "rm", "-f", "box-a", "box-b"], capture_output=True, check=False)


def test_chain_passes_on_two_containers_and_leaves_no_process(site: Site, docker: Path) -> None:
    outcome = site.run()
    assert outcome.code == 0, outcome.output
    assert set(outcome.run.nodes) == {"a", "b"}
    for name in ("a", "b"):
        assert sys.executable not in Boxes(docker).processes(name)
        assert "runner" not in Boxes(docker).processes(name)


def test_container_that_does_not_run_is_named_before_the_run(site: Site, docker: Path) -> None:
    Boxes(docker).kill("b")
    outcome = site.run()
    assert outcome.code != 0
    assert outcome.run.status is Status.INFRA_FAILURE
    assert "node b: " in outcome.output
    assert "exec cannot run a command in container box-b: " in outcome.output
