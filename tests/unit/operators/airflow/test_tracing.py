"""Spans of the wait for slots and of jobs on nodes."""

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.support.stories import T0, TRAIN, a_record

from tipcflow.domain import EndReason, Status
from tipcflow_operators.airflow import tracing

RUN = "20261121t093005-toy-0a1b"


class Spans:
    """The spans within a task's span."""

    def __init__(self, provider: TracerProvider, exporter: InMemorySpanExporter) -> None:
        self.task = provider.get_tracer("airflow")
        self._exporter = exporter

    @property
    def ended(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "_tracer", provider.get_tracer("tipcflow"))
    return Spans(provider, exporter)


def test_job_is_a_span_with_the_times_of_its_node(spans: Spans) -> None:
    with spans.task.start_as_current_span("worker.train[0]") as task:
        tracing.name_run(RUN)
        tracing.trace_job(a_record(RUN), 2, Status.PASS, "")
    job, worker = spans.ended
    assert job.name == "train on node-a"
    assert (job.start_time, job.end_time) == (int(T0 * 1e9), int((T0 + 12.5) * 1e9))
    assert job.parent is not None
    assert job.parent.span_id == task.get_span_context().span_id
    assert job.status.is_ok
    assert dict(job.attributes or {}) == {
        "tipcflow.run": RUN,
        "tipcflow.step": TRAIN,
        "tipcflow.node": "node-a",
        "tipcflow.attempt": 2,
        "tipcflow.status": "pass",
        "tipcflow.end": "exited",
        "tipcflow.exit_code": 0,
    }
    assert dict(worker.attributes or {}) == {"tipcflow.run": RUN}


def test_failed_job_states_the_masked_reason(spans: Spans) -> None:
    record = a_record(RUN, reason=EndReason.SIGNALED, exit_code=None, signal=9, ended_at=T0 - 1)
    tracing.trace_job(record, 1, Status.FAILED, "node-a: cannot log in with password=hunter2")
    (job,) = spans.ended
    assert not job.status.is_ok
    assert job.status.description == "node-a: cannot log in with password=***"
    assert "tipcflow.exit_code" not in (job.attributes or {})
    assert job.end_time == job.start_time, "the clock of a node may step back"


def test_wait_for_slots_is_a_span(spans: Spans) -> None:
    tracing.trace_wait(RUN, T0, T0 + 60)
    (wait,) = spans.ended
    assert (wait.name, wait.start_time, wait.end_time) == ("wait for slots", int(T0 * 1e9), int((T0 + 60) * 1e9))


def test_without_airflows_switch_nothing_is_recorded() -> None:
    tracing.name_run(RUN)
    tracing.trace_wait(RUN, T0, T0 + 1)
    tracing.trace_job(a_record(RUN), 1, Status.PASS, "")
