"""The tables of the metrics database.

Public: `__all__`.
"""

from tipcflow.store.schema.alerts import alert_events, alerts
from tipcflow.store.schema.lines import line_states
from tipcflow.store.schema.node_histories import node_histories
from tipcflow.store.schema.partial_indexes import MAY_ALERT, REPEATABLE, SUBJECT
from tipcflow.store.schema.quarantines import quarantines
from tipcflow.store.schema.tables import (
    CHECK_WORDS,
    RUN_WORDS,
    STEP_WORDS,
    approvals,
    attempts,
    baselines,
    check_results,
    documents,
    environments,
    fences,
    lease_requests,
    leases,
    legs,
    members,
    messages,
    metadata,
    outbox,
    plans,
    pull_attempts,
    runs,
    series,
    steps,
)

__all__ = [
    "CHECK_WORDS",
    "MAY_ALERT",
    "REPEATABLE",
    "RUN_WORDS",
    "STEP_WORDS",
    "SUBJECT",
    "alert_events",
    "alerts",
    "approvals",
    "attempts",
    "baselines",
    "check_results",
    "documents",
    "environments",
    "fences",
    "lease_requests",
    "leases",
    "legs",
    "line_states",
    "members",
    "messages",
    "metadata",
    "node_histories",
    "outbox",
    "plans",
    "pull_attempts",
    "quarantines",
    "runs",
    "series",
    "steps",
]
