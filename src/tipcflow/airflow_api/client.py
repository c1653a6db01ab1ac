"""A small client of Airflow's REST API (v2), tested with 3.3.2."""

import json
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Literal, Self, TypeVar
from urllib.parse import quote

import httpx

from tipcflow.airflow_api.http import Http
from tipcflow.airflow_api.models import Audited, Dag, DagRun, Health, ImportFault, TaskInstance
from tipcflow.airflow_api.responses import detail, json_of, model_of, refusal, unknown_dag
from tipcflow.domain import ConfigError
from tipcflow.domain.alert.audit import STOPS
from tipcflow.report.api import BuildRuns, RunFacts

_API = "/api/v2"
# Airflow's default `[api] maximum_page_limit`; with another limit it returns fewer entries, never more.
_PAGE = 100
_LONGEST_NOTE = 1000

_Model = TypeVar("_Model", Dag, DagRun)


class Airflow:
    """One Airflow deployment.

    Every method is one call with a deadline (several calls for paginated responses); a call without a response is
    retried with back-off until the deadline. All calls are safe to repeat.

    Args:
        url: its address, including a path prefix.
        user, password: for a token login, at the first call and whenever the token has expired.
        token: a token instead of a login.
        deadline_s: maximum seconds of one call, including retries.
        transport: replaces the network in tests.

    Every method raises ConfigError (login rejected, unknown DAG or run, params rejected, not an Airflow) or
    InfraError (no response, an error inside Airflow); neither contains a secret.
    """

    def __init__(
        self,
        url: str,
        *,
        user: str | None = None,
        password: str | None = None,
        token: str | None = None,
        deadline_s: float = 60.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = Http(
            url, user=user, password=password, token=token, deadline_s=deadline_s, transport=transport
        )

    @property
    def url(self) -> str:
        """The address without a trailing slash."""
        return self._http.url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def health(self, *, deadline_s: float | None = None) -> Health:
        """The health of scheduler, triggerer, dag_processor and metadatabase; needs no login."""
        content = json_of(
            self._http.call("GET", f"{_API}/monitor/health", login=False, deadline_s=deadline_s), self.url
        )
        parts = {name: part for name, part in content.items() if isinstance(part, dict)}
        return Health(components={name: str(part.get("status") or "") for name, part in parts.items()})

    def dags(self) -> list[Dag]:
        """All parsed, existing DAGs, sorted by id."""
        dags = [Dag.model_validate(entry) for entry in self._pages(f"{_API}/dags", "dags", {"order_by": "dag_id"})]
        return [dag for dag in dags if not dag.is_stale]

    def dag(self, dag_id: str) -> Dag:
        """One DAG; raises ConfigError with similar names if it is unknown."""
        return self._read(Dag, "GET", self._dag(dag_id), dag_id)

    def import_errors(self, *, since: float = 0.0) -> dict[str, str]:
        """Import errors of DAG files: file -> traceback.

        Args:
                since: Unix time; older errors are ignored, because the file may have been fixed.
        """
        faults = map(ImportFault.model_validate, self._pages(f"{_API}/importErrors", "import_errors", {}))
        return {fault.filename: fault.stack_trace for fault in faults if fault.timestamp.timestamp() >= since}

    def unpause(self, dag_id: str) -> Dag:
        """Let the scheduler start the DAG's runs; raises ConfigError if this login may not."""
        body, params = {"is_paused": False}, {"update_mask": "is_paused"}
        response = self._http.call("PATCH", self._dag(dag_id), json=body, params=params)
        if response.status_code == 403:
            raise ConfigError(
                f"DAG {dag_id} is paused, and this login may not unpause it",
                hint="a user with the role operator or admin may unpause it",
            )
        return model_of(Dag, self._good(response, dag_id), self.url)

    def trigger(self, dag_id: str, conf: Mapping[str, Any], run_id: str) -> DagRun:
        """Create a run of a DAG, or return the existing run with this id (idempotent).

        Args:
            conf: the DAG's params; omitted ones have their defaults.
            run_id: letters, digits and `_.~:+-`; the part before `__` names the trigger.

        Raises:
            ConfigError: unknown DAG, params or run ID rejected by Airflow, or the id belongs to a run with
                another conf.
        """
        body = {"dag_run_id": run_id, "logical_date": None, "conf": dict(conf)}
        response = self._http.call("POST", f"{self._dag(dag_id)}/dagRuns", json=body)
        if response.status_code != 409:
            return model_of(DagRun, self._good(response, dag_id), self.url)
        there = self.dag_run(dag_id, run_id)
        if (there.conf or {}) != dict(conf):
            raise ConfigError(
                f"DAG {dag_id} has a run {run_id} with other params",
                found=str(there.conf or {}),
                expected=str(dict(conf)),
            )
        return there

    def dag_run(self, dag_id: str, run_id: str, *, deadline_s: float | None = None) -> DagRun:
        """The current state of a DAG run."""
        path = self._dag_run(dag_id, run_id)
        return self._read(DagRun, "GET", path, dag_id, run_id=run_id, deadline_s=deadline_s)

    def unfinished(self) -> list[DagRun]:
        """The queued and running runs of all DAGs, oldest first."""
        states = {"state": ["queued", "running"], "order_by": "run_after"}
        return [
            DagRun.model_validate(entry) for entry in self._pages(f"{_API}/dags/~/dagRuns", "dag_runs", states)
        ]

    def task_instances(self, dag_id: str, run_id: str, *, deadline_s: float | None = None) -> list[TaskInstance]:
        """All task instances of a run, including mapped ones, sorted by task id and map index."""
        path = f"{self._dag_run(dag_id, run_id)}/taskInstances"
        pages = self._pages(path, "task_instances", {}, dag_id, run_id, deadline_s)
        instances = [TaskInstance.model_validate(entry) for entry in pages]
        return sorted(instances, key=lambda instance: (instance.task_id, instance.map_index))

    def set_note(self, dag_id: str, run_id: str, note: str) -> DagRun:
        """Set the note of a run in the UI; Airflow stores 1000 characters."""
        return self._patch_run(dag_id, run_id, "note", note[:_LONGEST_NOTE])

    def set_state(
        self, dag_id: str, run_id: str, state: Literal["failed", "success"], *, deadline_s: float | None = None
    ) -> DagRun:
        """Mark a run as failed or successful: running tasks are killed, teardowns still run."""
        return self._patch_run(dag_id, run_id, "state", state, deadline_s=deadline_s)

    def stop(self, dag_id: str, run_id: str, *, deadline_s: float | None = None) -> None:
        """Stop a run: mark it as failed.

        A login that may not edit DAG runs stops those that it has started, through the Certification page.
        """
        path, state = self._dag_run(dag_id, run_id), {"state": "failed"}
        response = self._http.call(
            "PATCH", path, json=state, params={"update_mask": "state"}, deadline_s=deadline_s
        )
        if response.status_code == 403:
            own = f"/certification{path.removeprefix(_API).replace('/dags/', '/api/dags/', 1)}/stop"
            response = self._http.call("POST", own, deadline_s=deadline_s)
            self._require_page(response)
        self._good(response, dag_id, run_id)

    def certification(self, run: str, *, deadline_s: float | None = None) -> RunFacts | None:
        """The facts of a run from the Certification page; None while the run is unknown.

        Args:
            run: the tipcflow run ID, one of `DagRun.runs`.
        """
        response = self._http.call("GET", f"/certification/api/runs/{quote(run, safe='')}", deadline_s=deadline_s)
        self._require_page(response)
        return None if response.status_code == 404 else model_of(RunFacts, self._good(response), self.url)

    def certification_of(self, dag_run: DagRun, *, deadline_s: float | None = None) -> RunFacts | None:
        """The facts of a DAG run's run; None while the run is unknown."""
        known = (self.certification(run, deadline_s=deadline_s) for run in dag_run.runs)
        return next((facts for facts in known if facts is not None), None)

    def stopped_by(self, dag_id: str, run_id: str, *, deadline_s: float | None = None) -> str:
        """The user who last stopped a DAG run within a day, by the Certification page; '' if there is none."""
        response = self._http.call("GET", "/certification/api/audit", params={"days": "1"}, deadline_s=deadline_s)
        self._require_page(response)
        listed = model_of(Audited, self._good(response), self.url)
        about = f"{dag_id} {run_id}"
        users = (entry.who for entry in listed.entries if entry.about == about and entry.action in STOPS)
        return next(users, "")

    def build_runs(self, params: Mapping[str, str]) -> BuildRuns:
        """The runs that certify a framework build, as Airflow's configs/repositories declare them.

        Args:
            params: `framework`, or `framework_wheel` and `framework_sha256`, as in the conf of a run.

        Raises:
            ConfigError: also an unknown framework, or a wheel that Airflow does not accept.
        """
        response = self._http.call("GET", "/certification/api/builds", params=dict(params))
        self._require_page(response)
        if response.status_code == 422:
            raise ConfigError(detail(response))
        if response.status_code == 404:
            raise ConfigError(f"Airflow at {self.url} has a tipcflow that cannot select the chains of a build")
        return model_of(BuildRuns, self._good(response), self.url)

    def _require_page(self, response: httpx.Response) -> None:
        if "json" in response.headers.get("content-type", ""):
            return
        # Airflow returns its web page with status 200 for unknown paths.
        raise ConfigError(
            f"Airflow at {self.url} has no Certification page",
            hint="install `tipcflow[airflow]` in Airflow's environment and restart it",
        )

    def put_connection(self, identity: str, connection: Mapping[str, Any], *, replace: bool = True) -> bool:
        """Create a connection, or replace an existing one; return whether it was written.

        Args:
            connection: `conn_type`, `host`, `port`, `login`, and `extra` as an object.
            replace: False leaves an existing connection unchanged, which may have secrets that this one lacks.
        """
        fields = {key: value for key, value in connection.items() if key != "extra"}
        extra = json.dumps(connection.get("extra") or {})
        body = {"connection_id": identity, **fields, "extra": extra}
        response = self._http.call("POST", f"{_API}/connections", json=body)
        if response.status_code == 409:
            if not replace:
                return False
            response = self._http.call("PATCH", self._connection(identity), json=body)
        self._good(response)
        return True

    def remove_connection(self, identity: str) -> None:
        """Remove a connection. Idempotent."""
        response = self._http.call("DELETE", self._connection(identity))
        if response.status_code != 404:
            self._good(response)

    def _connection(self, identity: str) -> str:
        return f"{_API}/connections/{quote(identity, safe='')}"

    def _dag(self, dag_id: str) -> str:
        return f"{_API}/dags/{quote(dag_id, safe='')}"

    def _dag_run(self, dag_id: str, run_id: str) -> str:
        return f"{self._dag(dag_id)}/dagRuns/{quote(run_id, safe='')}"

    def _patch_run(
        self, dag_id: str, run_id: str, key: str, value: str, *, deadline_s: float | None = None
    ) -> DagRun:
        path, mask = self._dag_run(dag_id, run_id), {"update_mask": key}
        return self._read(
            DagRun, "PATCH", path, dag_id, {key: value}, run_id=run_id, params=mask, deadline_s=deadline_s
        )

    def _read(
        self,
        model: type[_Model],
        method: str,
        path: str,
        dag_id: str,
        body: Mapping[str, Any] | None = None,
        *,
        run_id: str = "",
        params: dict[str, Any] | None = None,
        deadline_s: float | None = None,
    ) -> _Model:
        response = self._http.call(method, path, json=body, params=params, deadline_s=deadline_s)
        return model_of(model, self._good(response, dag_id, run_id), self.url)

    def _pages(
        self,
        path: str,
        key: str,
        params: dict[str, Any],
        dag_id: str = "",
        run_id: str = "",
        deadline_s: float | None = None,
    ) -> Iterator[dict[str, Any]]:
        offset = 0
        while True:
            page_of = {**params, "limit": _PAGE, "offset": offset}
            response = self._http.call("GET", path, params=page_of, deadline_s=deadline_s)
            content = json_of(self._good(response, dag_id, run_id), self.url)
            yield from (page := list(content.get(key, ())))
            offset += len(page)
            if not page or offset >= int(content.get("total_entries") or 0):
                return

    def _good(self, response: httpx.Response, dag_id: str = "", run_id: str = "") -> httpx.Response:
        if response.is_success:
            return response
        if response.status_code == 404 and dag_id:
            # Airflow's response is the same for an unknown run and an unknown DAG.
            known = [dag.dag_id for dag in self.dags()]
            if dag_id not in known:
                raise unknown_dag(dag_id, known, self.url)
        raise refusal(response, self.url, dag_id, run_id)
