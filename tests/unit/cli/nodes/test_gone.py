"""`tipcflow nodes reap --gone`: slots of a node that was removed from the cluster file are released."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.installed.operations_page import commands
from tests.support.stories import a_run

from tipcflow.domain import Cluster
from tipcflow.store import Store

LOST, EXPIRED, LIVE = "10.0.0.7", "20261120t101010-toy-c0de", "20261121t101010-toy-c0df"


@pytest.fixture
def cluster_file(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cluster without the lost node."""
    folder = tmp_path / "configs" / "clusters"
    folder.mkdir(parents=True)
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(folder.parent))
    write(folder / "lab.yaml", "192.0.2.1")
    return folder / "lab.yaml"


def write(path: Path, *addresses: str) -> None:
    nodes = [
        {"name": f"n{number}", "address": address, "python": "/usr/bin/python3", "workspace": "/w"}
        for number, address in enumerate(addresses)
    ]
    path.write_text(Cluster.model_validate({"name": "lab", "nodes": nodes}).model_dump_json())


@pytest.fixture
def url(database: Path, cluster_file: Path) -> str:
    """Leases of two runs on the lost node, one of them expired, and an expired one on the other node."""
    address = f"sqlite:///{database}"
    with Store.open(address) as store:
        now = store.now()
        for name in (EXPIRED, LIVE):
            store.runs.create(a_run(name))
        slots = [(LOST, 0), (LOST, 1), ("192.0.2.1", 0)]
        store.leases.acquire(EXPIRED, slots, owner="airflow", ttl_s=1, now=now - 7200)
        store.leases.acquire(LIVE, [(LOST, 2)], owner="airflow", ttl_s=3600, now=now)
    return address


def leases(url: str) -> list[tuple[str, int]]:
    with Store.open(url) as store:
        return [(lease.node, lease.slot) for lease in store.leases.all()]


def test_expired_leases_of_a_lost_node_are_removed(tipcflow: Callable[..., Any], url: str) -> None:
    _, command = commands("A node is lost", "tipcflow")
    done = tipcflow(*command.split()[1:])
    assert (done.code, done.err) == (0, "")
    first, second = done.out.splitlines()
    assert first == f"{LOST}: run {EXPIRED}: its expired lease on slots 0-1 was removed; the node was not listed"
    assert second.startswith(f"{LOST}: run {LIVE}: its lease on slot 2 stays: it expires at 20")
    # The alert TipcflowLeaseExpired ends.
    assert leases(url) == [(LOST, 2), ("192.0.2.1", 0)]
    with Store.open(url) as store:
        assert LOST not in store.leases.expired_nodes()


def test_a_run_is_chosen(tipcflow: Callable[..., Any], url: str) -> None:
    done = tipcflow("nodes", "reap", "--gone", LOST, "--run", LIVE)
    assert (done.code, done.out.count("\n"), len(leases(url))) == (0, 1, 4)


@pytest.mark.parametrize("words", [(LOST,), ("n1",)], ids=["address", "name"])
def test_a_node_of_a_cluster_file_is_refused(
    tipcflow: Callable[..., Any], url: str, cluster_file: Path, words: tuple[str, ...]
) -> None:
    write(cluster_file, "192.0.2.1", LOST)
    done = tipcflow("nodes", "reap", "--gone", *words)
    assert (done.code, len(leases(url))) == (2, 4)
    assert f"node n1 ({LOST}) is in this cluster file" in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--gone", "10.0.0.8"),
            f"no lease of any run on this node; found '10.0.0.8'; expected an address with leases: {LOST}",
        ),
        (("--gone", LOST, "n0"), "--gone: cannot be combined"),
        (("--gone", LOST, "--cluster", "lab"), "--gone: cannot be combined"),
    ],
    ids=["another address", "node", "cluster"],
)
def test_wrong_options_change_nothing(
    tipcflow: Callable[..., Any], url: str, words: tuple[str, ...], message: str
) -> None:
    done = tipcflow("nodes", "reap", *words)
    assert (done.code, len(leases(url))) == (2, 4)
    assert message in " ".join(done.err.split())
