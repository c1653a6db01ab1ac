"""A run is one trace: DAG run, tasks, the wait for slots and the jobs on the nodes, received over OTLP."""

import gzip
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
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


@dataclass
class Collector:
    """A receiver of OTLP over HTTP."""

    url: str
    spans: list[Any] = field(default_factory=list)
    metrics: set[str] = field(default_factory=set)

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            request = ExportTraceServiceRequest.FromString(body)
            self.spans += [s for r in request.resource_spans for scope in r.scope_spans for s in scope.spans]
        elif path == "/v1/metrics":
            sent = ExportMetricsServiceRequest.FromString(body)
            scopes = [scope for resource in sent.resource_metrics for scope in resource.scope_metrics]
            self.metrics |= {metric.name for scope in scopes for metric in scope.metrics}


@pytest.fixture
def collector() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.take(self.path, gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield made
    server.shutdown()
    server.server_close()


def attributes(span: Any) -> dict[str, str]:
    return {item.key: item.value.string_value or str(item.value.int_value) for item in span.attributes}


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
    (root,) = (span for span in collector.spans if span.name == f"dag_run.{DAG}")
    spans = [span for span in collector.spans if span.trace_id == root.trace_id]
    own = {span.name: span for span in spans if attributes(span).get("tipcflow.node")}
    assert {"train on a", "train on b", "eval on a", "export on a", "infer_cpu on a"} <= set(own)
    assert {attributes(span)["tipcflow.status"] for span in own.values()} <= {"pass", "not_run"}
    workers = {span.span_id: span for span in spans if span.name.startswith("worker.")}
    for span in own.values():
        worker = workers[span.parent_span_id]
        assert attributes(worker)["tipcflow.run"] == attributes(span)["tipcflow.run"] == run.id
    assert "wait for slots" in {span.name for span in spans}
    assert any("scheduler" in name for name in collector.metrics), sorted(collector.metrics)
