"""Spans of a run in the trace of its DAG run; without Airflow's `[traces] otel_on` they are not recorded.

Airflow makes a span of each DAG run and task. Added are the wait for slots and each job on a node.
"""

from opentelemetry import trace
from opentelemetry.trace import StatusCode

from tipcflow.domain import ExitRecord, Status
from tipcflow.domain.masking import mask

_tracer = trace.get_tracer("tipcflow")
_NS = 1e9
_LONGEST = 300


def name_run(run: str) -> None:
    """Add the ID of the run to the task's span."""
    trace.get_current_span().set_attribute("tipcflow.run", run)


def trace_wait(run: str, since: float, until: float) -> None:
    """Add the wait of a run for its slots.

    Args:
        since, until: seconds since the epoch.
    """
    span = _tracer.start_span("wait for slots", start_time=int(since * _NS), attributes={"tipcflow.run": run})
    span.end(int(max(since, until) * _NS))


def trace_job(record: ExitRecord, attempt: int, status: Status, reason: str) -> None:
    """Add the job of a step on one node, with the times of the node's clock.

    Args:
        status, reason: of the step.
    """
    attributes: dict[str, str | int] = {
        "tipcflow.run": record.run,
        "tipcflow.step": record.step,
        "tipcflow.node": record.node,
        "tipcflow.attempt": attempt,
        "tipcflow.status": status.value,
        "tipcflow.end": record.reason.value,
    }
    if record.exit_code is not None:
        attributes["tipcflow.exit_code"] = record.exit_code
    name = f"{record.step.rpartition('/')[2]} on {record.node}"
    span = _tracer.start_span(name, start_time=int(record.started_at * _NS), attributes=attributes)
    is_good = status in (Status.PASS, Status.NOT_RUN)
    span.set_status(StatusCode.OK if is_good else StatusCode.ERROR, None if is_good else mask(reason)[:_LONGEST])
    span.end(int(max(record.started_at, record.ended_at) * _NS))
