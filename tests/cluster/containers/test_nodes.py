"""The sample suite's fleet chain in containers of a real engine: two nodes of one host, two processes on each."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support import certify
from tests.support.containers import engine
from tests.support.samples.site import sample_site

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Run, Status

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.full,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(engine.missing()), reason=engine.missing()),
]
SUITE = "mobilenet_v3_small"
PARAMS = "test_tipc/configs/mobilenet_v3_small/train_fleet_infer_python.txt"


@pytest.fixture(scope="module")
def docker() -> Iterator[Path]:
    with engine.real_engine() as made:
        yield made


def test_fleet_chain_passes_in_containers_of_one_host(
    docker: Path,
    make_nodes: Callable[..., LocalNodes],
    node_python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(certify, "DEADLINE_S", 800)
    site = sample_site(tmp_path / "site", make_nodes(mode="loopback"), SUITE)
    # The image has neither Paddle nor its libraries: both are mounted, as docs/tutorial/containers.md describes.
    environment = node_python.parents[1]
    mounts = [*engine.ARGS, "-v", f"{environment}:{environment}:ro", "-v", "/usr:/usr:ro", "--shm-size=1g"]
    box = {"image": engine.IMAGE, "engine": str(docker), "python": str(node_python), "args": mounts}
    for name in ("a", "b"):
        site.configure_node(name, container=box)
    show_marker(site)
    outcome = site.run(params=PARAMS, suite=SUITE)
    assert outcome.code == 0, outcome.output
    assert_complete(site, outcome.run, ("a", "b"))
    with site.store() as store:
        facts = store.history.facts(outcome.run.id)
    assert all(fact.container.startswith(f"{engine.IMAGE} (sha256:") for fact in facts.node_facts)
    left = subprocess.run([docker, "ps", "-aq"], capture_output=True, text=True, check=True)
    assert left.stdout == ""
    assert site.left_behind() == []


def show_marker(site: certify.Site) -> None:
    """Let the preparation print a file that only the image has."""
    prepare = site.suite / "test_tipc" / "prepare.sh"
    prepare.write_text(prepare.read_text() + "\necho inside: $(cat /etc/marker)\n")


def assert_complete(site: certify.Site, run: Run, nodes: tuple[str, str]) -> None:
    """Four ranks on two nodes trained, the legs passed, and both nodes prepared inside."""
    with site.store() as store:
        losses = store.measurements.of(run.id, metric="loss")
        facts = store.history.facts(run.id)
        statuses = {result.check: result.status for result in store.checks.results(run.id)}
    ranks = {(nodes[rank // 2], rank) for rank in range(4)}
    assert {(sample.node, sample.rank) for sample in losses} == ranks
    assert set(facts.leg_status.values()) == {Status.PASS}
    for name in ("ran.steps", "ran.world_size", "ran.group", "loss.falling"):
        assert statuses[name] is Status.PASS, name
    logs = [path.read_text() for path in (site.home / "runs" / run.id).rglob("main.log")]
    assert sum(f"inside: {engine.MARKER}" in log for log in logs) == 2
