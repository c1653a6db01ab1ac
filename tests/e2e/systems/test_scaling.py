"""The DAG `scaling` in a real Airflow, with a training that a script of the suite starts on each node."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.certify import ROOT
from tests.support.samples.scripted import NAME, PARAMS, scripted_site
from tests.support.samples.site import HOME
from tests.support.scheduler import Scheduler

from devcluster.airflow.stack import airflow_stack
from devcluster.local_nodes.nodes import local_nodes
from tipcflow.airflow_api import RunState
from tipcflow.airflow_api.node_connections import connections_env
from tipcflow.domain.run.scaling import ScalingDocument

RUN_S = 700.0
pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(900)]


@pytest.fixture
def airflow(tmp_path: Path) -> Iterator[Scheduler]:
    """A real Airflow with the shipped DAGs that measure, and two nodes with a slot each."""
    dags = tmp_path / "dags"
    dags.mkdir()
    for name in ("certify", "confirm", "scaling"):
        shutil.copy(ROOT / "dags" / f"{name}.py", dags)
    with local_nodes(tmp_path / "nodes", slots=1, python=HOME / "envs" / "node-cpu" / "bin" / "python") as nodes:
        site = scripted_site(tmp_path / "site", nodes)
        shutil.copy(ROOT / "configs" / "airflow.env", site.configs)
        connections = connections_env(nodes.cluster)
        plugins = ROOT / "plugins"
        with airflow_stack(
            site.home, dags=dags, plugins=plugins, configs=site.configs, connections=connections
        ) as stack:
            scheduler = Scheduler(site, stack)
            scheduler.wait_for_dags("scaling", "certify")
            yield scheduler


def test_series_of_a_script_is_measured_by_the_dag(airflow: Scheduler) -> None:
    conf = {"suite": NAME, "params_file": PARAMS, "cluster": "local", "repeats": 1, "skip": 2, "take": 10}
    run = airflow.ended(airflow.start("scaling", **conf, batch_size_per_device=4), RUN_S)
    states = airflow.states(run)
    measured = {"measure[1n1g]", "measure[2n1g]"}
    assert run.state is RunState.SUCCESS, states
    assert {name for name, state in states.items() if state == "success"} == {*measured, "check", "result"}
    skipped = {name for name, state in states.items() if state == "skipped"}
    assert skipped == {f"measure[{name}]" for name in ("1n2g", "1n4g", "1n8g", "2n2g", "2n8g", "4n8g")}
    with airflow.site.store() as store:
        (document,) = store.documents.of_type(ScalingDocument).values()
    entries = {entry.topology: entry for entry in document.topologies}
    assert entries["2n2g"].reason == "2 devices per node needed, node a has 1"
    assert entries["4n8g"].reason == "4 nodes needed, cluster local has 2"
    for name in ("1n1g", "2n1g"):
        assert entries[name].median_speed
        logs = [log.read_text() for log in (airflow.site.home / "runs" / entries[name].run).rglob("logs/main.log")]
        assert any("arguments: mobilenet_v3_small 4 fp32" in log for log in logs)
    assert airflow.site.left_behind() == []
