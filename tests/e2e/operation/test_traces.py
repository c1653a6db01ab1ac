"""A run is one trace: DAG run, tasks, the wait for slots and the jobs on the nodes, received over OTLP."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.airflow.collector import Collector, check_trace, otlp_collector
from tests.support.certify import ROOT, Site
from tests.support.scheduler import DAG, Scheduler, make_catalog

from devcluster.airflow.stack import airflow_stack
from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.airflow_api.node_connections import connections_env
from tipcflow.domain import Status

pytestmark = [pytest.mark.e2e, pytest.mark.full]
# The documented switch (docs/operations.md); the last variable only makes the test short.
SWITCH = {
    "AIRFLOW__TRACES__OTEL_ON": "True",
    "AIRFLOW__METRICS__OTEL_ON": "True",
    "OTEL_TRACES_EXPORTER": "otlp_proto_http",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_METRIC_EXPORT_INTERVAL": "2000",
}
JOBS = {"train on a", "train on b", "eval on a", "export on a", "infer_cpu on a"}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with otlp_collector() as made:
        yield made


def test_run_is_a_trace_across_tasks_and_nodes(nodes: LocalNodes, collector: Collector, tmp_path: Path) -> None:
    site = Site(tmp_path, nodes)
    dags = make_catalog(site)
    (site.configs / "airflow.env").write_bytes((ROOT / "configs" / "airflow.env").read_bytes())
    with airflow_stack(
        site.home,
        dags=dags,
        configs=site.configs,
        env={**SWITCH, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
        connections=connections_env(nodes.cluster),
    ) as stack:
        scheduler = Scheduler(site, stack)
        scheduler.wait_for_dags(DAG)
        _, run = scheduler.certify()
        assert run.status is Status.PASS, run.reason
        until = time.monotonic() + 30
        while f"dag_run.{DAG}" not in {span.name for span in collector.spans} or not collector.metrics:
            assert time.monotonic() < until, sorted({span.name for span in collector.spans})
            time.sleep(0.5)
    check_trace(collector.trace(f"dag_run.{DAG}"), run.id, JOBS)
    assert any("scheduler" in name for name in collector.metrics), sorted(collector.metrics)
