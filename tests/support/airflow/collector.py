"""A collector of OpenTelemetry: receives OTLP over HTTP and keeps it."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class Collector:
    """What components have sent.

    Attributes:
        url: endpoint of the exporters.
        spans: of all traces.
        metrics: their names.
    """

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

    def trace(self, root: str) -> list[Any]:
        """Spans of the only trace whose root has this name."""
        (first,) = (span for span in self.spans if span.name == root)
        return [span for span in self.spans if span.trace_id == first.trace_id]


@contextmanager
def otlp_collector(address: str = "127.0.0.1") -> Iterator[Collector]:
    """Receive at a free port of an address of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.take(self.path, gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((address, 0), Handler)
    made = Collector(f"http://{address}:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()


def attributes(span: Any) -> dict[str, str]:
    """Attributes of a span, numbers as text."""
    return {item.key: item.value.string_value or str(item.value.int_value) for item in span.attributes}


def check_trace(spans: list[Any], run: str, jobs: set[str]) -> None:
    """Require spans of the jobs on nodes, each below that of the task that started the job, and of the queue."""
    own = {span.name: span for span in spans if attributes(span).get("tipcflow.node")}
    assert jobs <= set(own), sorted(own)
    assert {attributes(span)["tipcflow.status"] for span in own.values()} <= {"pass", "not_run"}
    workers = {span.span_id: span for span in spans if span.name.startswith("worker.")}
    for span in own.values():
        worker = workers[span.parent_span_id]
        assert attributes(worker)["tipcflow.run"] == attributes(span)["tipcflow.run"] == run
    assert "wait for slots" in {span.name for span in spans}
