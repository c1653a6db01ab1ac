"""One real Airflow with two real nodes, shared by the tests of this folder that want it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.certify import ROOT, Site
from tests.support.scheduler import SITE_PASSWORD, Scheduler, make_catalog

from devcluster.airflow.stack import airflow_stack
from devcluster.local_nodes.nodes import LocalNodes, local_nodes
from tipcflow.airflow_api.node_connections import connections_env

CHAINS = ("train_infer_python", "second", "third")


@pytest.fixture(scope="session")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalNodes]:
    import sys

    with local_nodes(tmp_path_factory.mktemp("nodes"), python=Path(sys.executable)) as made:
        yield made


@pytest.fixture(scope="session")
def airflow(nodes: LocalNodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    """Airflow's four components with our DAGs, settings and plugin, and the toy suite's chains."""
    site = Site(tmp_path_factory.mktemp("airflow"), nodes)
    dags = make_catalog(site, CHAINS)
    (site.configs / "airflow.env").write_bytes((ROOT / "configs" / "airflow.env").read_bytes())
    with airflow_stack(
        site.home,
        dags=dags,
        plugins=ROOT / "plugins",
        configs=site.configs,
        # The parameters of a chain of the weekly run may then change between one chain and the next.
        env={"TIPCFLOW_WEEKLY_AT_ONCE": "1", "SITE_SERVICE_PASSWORD": SITE_PASSWORD},
        connections=connections_env(nodes.cluster),
    ) as stack:
        scheduler = Scheduler(site, stack)
        scheduler.wait_for_dags(*(f"toy.toy.{name}" for name in CHAINS), "certify", "confirm")
        yield scheduler


@pytest.fixture
def scheduler(airflow: Scheduler) -> Iterator[Scheduler]:
    """The shared Airflow; the suite is as it was afterwards, and nothing may be left on the nodes."""
    folder = airflow.site.suite / "test_tipc" / "configs" / "toy"
    kept = {path: path.read_bytes() for path in folder.glob("*.txt")}
    yield airflow
    for path, data in kept.items():
        path.write_bytes(data)
    assert airflow.site.left_behind() == []
