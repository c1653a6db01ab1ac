"""With the switch of docs/operations.md, a run on Celery's workers and the triggerers is one trace."""

from collections.abc import Iterator

import pytest
from tests.support.airflow.collector import Collector, check_trace, otlp_collector
from tests.support.compose.deployment import FAST, SCALE, Deployment
from tests.support.compose.engine import Engine

JOBS = {"train on node-1", "train on node-2", "eval on node-1", "export on node-1", "infer_cpu on node-1"}


@pytest.fixture
def collector(engine: Engine) -> Iterator[Collector]:
    with otlp_collector(engine.address) as made:
        yield made


def test_run_on_workers_is_one_trace(deployment: Deployment, collector: Collector) -> None:
    deployment.set(OTEL_ON="True", OTEL_ENDPOINT=collector.url)
    try:
        deployment.up(scale=SCALE)
        deployment.until_healthy()
        run = deployment.certify()
        root = f"dag_run.{deployment.dag(FAST)}"
        # Exporters send every few seconds.
        deployment.until(lambda: root in {span.name for span in collector.spans}, f"the span {root}", 60)
        deployment.until(lambda: any("scheduler" in name for name in collector.metrics), "Airflow's metrics", 90)
    finally:
        deployment.set(OTEL_ON="False")
        deployment.up(scale=SCALE)
        deployment.until_healthy()
    check_trace(collector.trace(root), run, JOBS)
