"""Requests to the api-server and the status that each login gets: the table of what roles may do."""

from typing import Any, NamedTuple

LOGINS = ("viewer", "ci", "operator", "approver", "admin")


class Row(NamedTuple):
    """A request; `{run}` is a DAG run that the login `ci` has started, `{other}` one of `admin`.

    Attributes:
        statuses: of the LOGINS, in their order.
    """

    method: str
    path: str
    statuses: str
    body: Any = None


_TOY, _RUN, _OTHER = "/api/v2/dags/toy", "/api/v2/dags/toy/dagRuns/{run}", "/api/v2/dags/toy/dagRuns/{other}"
_ACCESS = "/auth/fab/v1"
_CONNECTION = {"connection_id": "made", "conn_type": "ssh", "host": "node-1"}
_NAMES = {"first_name": "a", "last_name": "b", "email": "a@b.example"}
_USER = {"username": "made", "password": "a-long-password", "roles": [{"name": "Viewer"}], **_NAMES}
_CLEAR = {"dry_run": False, "only_failed": True}
_FAIL = {"state": "failed"}
_START = {"logical_date": None, "conf": {}}
_BACKFILL = {"dag_id": "maintenance", "from_date": "2026-01-01T00:00:00Z", "to_date": "2026-01-02T00:00:00Z"}

TABLE = (
    # Everybody reads: DAGs, runs, tasks, logs, pages.
    Row("GET", "/api/v2/dags", "200 200 200 200 200"),
    Row("GET", _TOY, "200 200 200 200 200"),
    Row("GET", "/api/v2/dagSources/toy", "200 200 200 200 200"),
    Row("GET", f"{_TOY}/dagRuns", "200 200 200 200 200"),
    Row("GET", _RUN, "200 200 200 200 200"),
    Row("GET", f"{_RUN}/taskInstances", "200 200 200 200 200"),
    Row("GET", "/api/v2/importErrors", "200 200 200 200 200"),
    Row("GET", "/certification/", "200 200 200 200 200"),
    Row("GET", "/certification/api/runs", "200 200 200 200 200"),
    # Secrets, settings and the logins of others are for admins. Airflow shows its configuration to no login.
    Row("GET", "/api/v2/connections", "403 403 403 403 200"),
    Row("GET", "/api/v2/variables", "403 403 403 403 200"),
    Row("GET", "/api/v2/config", "403 403 403 403 403"),
    Row("GET", "/api/v2/eventLogs", "403 403 403 403 200"),
    Row("GET", "/api/v2/plugins", "403 403 403 403 200"),
    Row("GET", f"{_ACCESS}/users", "403 403 403 403 200"),
    Row("GET", f"{_ACCESS}/roles", "403 403 403 403 200"),
    # Start runs.
    Row("POST", f"{_TOY}/dagRuns", "403 200 200 403 200", _START),
    Row("POST", "/api/v2/dags/maintenance/dagRuns", "403 403 200 403 200", _START),
    Row("POST", "/api/v2/backfills", "403 403 422 403 422", _BACKFILL),
    Row("POST", "/api/v2/backfills", "403 403 422 403 422", {**_BACKFILL, "dag_id": "toy"}),
    # Operate: pause, mark, clear, annotate.
    Row("PATCH", _TOY, "403 403 200 403 200", {"is_paused": False}),
    Row("PATCH", f"{_RUN}?update_mask=note", "403 403 200 403 200", {"note": "a word"}),
    Row("PATCH", f"{_OTHER}?update_mask=state", "403 403 200 403 200", _FAIL),
    Row("POST", f"{_OTHER}/clear", "403 403 200 403 200", _CLEAR),
    Row("POST", f"{_TOY}/clearTaskInstances", "403 403 200 403 200", {"dry_run": True, "dag_run_id": "{run}"}),
    Row("PATCH", f"{_RUN}/taskInstances/one", "403 403 200 403 409", {"new_state": "success"}),
    Row("POST", f"{_RUN}/taskInstances/one/xcomEntries", "403 403 403 403 201", {"key": "a", "value": 1}),
    # Change the deployment.
    Row("POST", "/api/v2/connections", "403 403 403 403 201", _CONNECTION),
    Row("POST", "/api/v2/variables", "403 403 403 403 201", {"key": "a", "value": "b"}),
    Row("POST", "/api/v2/pools", "403 403 403 403 201", {"name": "a", "slots": 1}),
    Row("POST", f"{_ACCESS}/users", "403 403 403 403 200", _USER),
    Row("PATCH", f"{_ACCESS}/users/ci?update_mask=first_name", "403 403 403 403 200", {"first_name": "c"}),
    # Delete.
    Row("DELETE", "/api/v2/connections/made", "403 403 403 403 204"),
    Row("DELETE", _RUN, "403 403 403 403 204"),
    Row("DELETE", "/api/v2/dags/maintenance", "403 403 403 403 204"),
)
