"""Metrics of the deployment for Prometheus, behind a token of their own (docs/operations.md).

Prometheus has no login of Airflow. The route is a plain one without the login of the pages; it refuses every
request without the token.
"""

import hmac
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from statistics import quantiles
from time import monotonic

from fastapi import HTTPException, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from tipcflow.domain import Status
from tipcflow.domain.alert.entry import AlertState
from tipcflow.store.queries.operation import NodeState, Operation
from tipcflow_pages.data.data import current_settings, usable_store
from tipcflow_pages.secrets import connection_password
from tipcflow_pages.web.render import HEADERS

_log = logging.getLogger(__name__)
# The Airflow connection whose password is the token.
CONNECTION = "tipcflow_metrics"
# A changed token is in force after this time.
FRESH_S = 15.0
DAYS, MOST_DAYS = 7, 90
_DAY_S = 24 * 3600.0
_QUANTILES = {"0.5": 50, "0.95": 95}
# Labels of a node: clusters may name their nodes alike.
_NODE = ("cluster", "node")


def metrics(request: Request) -> Response:
    """Return all metrics in Prometheus' text format; `days` limits the runs that count.

    Raises:
        HTTPException: 401 without the token, 422 for an invalid `days`.
        TipcflowError: the metrics database cannot be used; shown as 503.
    """
    _require_token(request.headers.get("authorization", ""))
    days = _days(request.query_params.get("days", str(DAYS)))
    store = usable_store(current_settings())
    registry = CollectorRegistry()
    registry.register(Collector(store.operation.numbers(days * _DAY_S), days))
    return Response(generate_latest(registry), headers={**HEADERS, "Content-Type": CONTENT_TYPE_LATEST})


def _require_token(header: str) -> None:
    token = _token(int(monotonic() // FRESH_S))
    scheme, _, given = header.partition(" ")
    # Header values are Latin-1; comparing bytes takes the same time for any difference.
    is_equal = hmac.compare_digest(given.strip().encode("latin-1", "replace"), token)
    if not token or scheme.lower() != "bearer" or not is_equal:
        raise HTTPException(
            401,
            f"metrics require the token of Airflow's connection {CONNECTION}",
            headers={"WWW-Authenticate": "Bearer", "Cache-Control": "no-store"},
        )


@lru_cache(maxsize=2)
def _token(_: int) -> bytes:
    """Return the password of the connection, empty if there is none; read again after `FRESH_S`."""
    token = connection_password(CONNECTION)
    if token is None:
        _log.warning("metrics: Airflow has no connection %s, so every request is refused", CONNECTION)
    return token or b""


def forget_token() -> None:
    """Read the connection again at the next request."""
    _token.cache_clear()


def _days(text: str) -> int:
    # Python converts no number of thousands of digits.
    days = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if not 1 <= days <= MOST_DAYS:
        raise HTTPException(422, f"days: found {text[:50]!r}, expected a whole number from 1 to {MOST_DAYS}")
    return days


class Collector:
    """Metrics of one scrape.

    Args:
        days: age of the oldest run that counts.
    """

    def __init__(self, numbers: Operation, days: int) -> None:
        self._numbers = numbers
        self._days = days

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the registry is used once."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        numbers, window = self._numbers, f"of runs created in the last {self._days} days"
        yield _plain("tipcflow_window_days", "Age of the oldest run that counts.", self._days)
        runs = {(status.value,): 0 for status in Status} | {(name,): count for name, count in numbers.runs.items()}
        yield _labelled("tipcflow_runs", f"Ended runs by status, {window}.", ("status",), runs.items())
        yield _plain(
            "tipcflow_runs_unfinished", "Runs without a status, queued ones included.", numbers.unfinished
        )
        help_text = f"End of the newest ended run, 0 without one, {window}."
        yield _plain("tipcflow_last_verdict_timestamp_seconds", help_text, numbers.last_verdict)
        help_text = "Runs that wait for slots of nodes, or for an allocation by Slurm."
        yield _plain("tipcflow_queue_length", help_text, numbers.queued)
        yield _plain("tipcflow_queue_oldest_seconds", "Longest wait of a queued run.", numbers.oldest_queued_s)
        leases = {
            (*node, "expired" if expired else "held"): count for (*node, expired), count in numbers.leases.items()
        }
        yield _labelled("tipcflow_leases", "Leased slots by node.", (*_NODE, "state"), leases.items())
        yield from self._nodes(window)
        yield from self._node_states(window)
        latency = f"Seconds from a run's creation to its status, {window}."
        yield _labelled("tipcflow_verdict_latency_seconds", latency, ("trigger", "quantile"), _latencies(numbers))
        lag = f"Seconds from the end of a step on its nodes to its stored results, newest steps {window}."
        lags = _quantiles(numbers.ingest_lags)
        yield _labelled("tipcflow_ingest_lag_seconds", lag, ("quantile",), [((name,), s) for name, s in lags])
        alerts = {(state.value,): numbers.alerts.get(state.value, 0) for state in AlertState}
        help_text = f"Alerts by state that were opened in the last {self._days} days; invalid ones are false."
        yield _labelled("tipcflow_alerts", help_text, ("state",), alerts.items())
        yield _plain("tipcflow_outbox_waiting", "Webhook deliveries that are not handled yet.", numbers.deliveries)
        oldest = numbers.oldest_delivery_s
        yield _plain("tipcflow_outbox_oldest_seconds", "Age of the oldest delivery not handled yet.", oldest)

    def _nodes(self, window: str) -> Iterator[Metric]:
        numbers = self._numbers
        help_text = f"Ended runs that used a node, {window}."
        yield _labelled("tipcflow_node_runs", help_text, (*_NODE, "status"), numbers.node_runs.items())
        known = {(cluster, node) for cluster, node, _ in numbers.node_runs} | set(numbers.node_lost)
        lost = {node: numbers.node_lost.get(node, 0) for node in known}
        yield _labelled("tipcflow_node_lost_steps", f"Steps that lost a node, {window}.", _NODE, lost.items())
        losses = numbers.node_last_loss.items()
        help_text = f"End of the newest step that lost a node, {window}."
        yield _labelled("tipcflow_node_last_loss_timestamp_seconds", help_text, _NODE, losses)
        last = numbers.node_last.items()
        yield _labelled(
            "tipcflow_node_last_run_timestamp_seconds", "End of the newest run of a node.", _NODE, last
        )
        help_text = "Share by which the probes of a node are slower than before, 0 if they are not."
        yield _labelled("tipcflow_node_slowdown_ratio", help_text, _NODE, numbers.slowdowns.items())
        drained = [(key, 1) for key in numbers.drained]
        yield _labelled("tipcflow_node_drained", "1 for a drained node.", _NODE, drained)

    def _node_states(self, window: str) -> Iterator[Metric]:
        when = f"at the start of the newest run that reached it, {window}."
        metrics: dict[str, tuple[str, Callable[[NodeState], float | None]]] = {
            "state_timestamp_seconds": ("Time of the newest state of a node", lambda state: state.at),
            "disk_free_bytes": ("Free disk of a node", lambda state: state.disk_free_bytes),
            "clock_offset_seconds": ("Clock of a node minus the controller's", lambda state: state.clock_offset_s),
            "missing_gpus": ("Slots of a node without a GPU", lambda state: state.missing_gpus),
        }
        for name, (help_text, value_of) in metrics.items():
            values = {node: value_of(state) for node, state in self._numbers.node_states.items()}
            known = [(node, value) for node, value in values.items() if value is not None]
            yield _labelled(f"tipcflow_node_{name}", f"{help_text} {when}", _NODE, known)


def _latencies(numbers: Operation) -> Iterator[tuple[tuple[str, str], float]]:
    for trigger, seconds in numbers.latencies.items():
        for name, value in _quantiles(seconds):
            yield (trigger, name), value


def _quantiles(seconds: Sequence[float]) -> Iterator[tuple[str, float]]:
    """Yield (name of the quantile, its value); nothing without values."""
    if not seconds:
        return
    cuts = quantiles(seconds, n=100, method="inclusive") if len(seconds) > 1 else [*seconds] * 99
    for name, percent in _QUANTILES.items():
        yield name, cuts[percent - 1]


def _plain(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _labelled(
    name: str, text: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], float]]
) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for key, value in sorted(values):
        family.add_metric(key, value)
    return family
