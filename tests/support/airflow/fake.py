"""A small Airflow over real HTTP: DAGs, runs that go from phase to phase with every look, and the page's facts."""

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tipcflow.airflow_api.models import DagRun

AFTER = "2026-11-21T09:30:05Z"
Facts = Mapping[str, Any] | None
# (state of the DAG run, status on the page)
Phase = tuple[str, Facts]


@dataclass
class FakeAirflow:
    """State of the fake, which tests change. A run goes through the phases that its DAG had when it was created.
    `down` is the number of requests that get 503 before the fake responds again. `builds` is the response to a
    query for the runs of a framework build. `is_earlier`: run IDs are those of an earlier version."""

    url: str = ""
    dags: dict[str, dict[str, Any]] = field(default_factory=dict)
    phases: dict[str, Sequence[Phase]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    runs: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    course: dict[tuple[str, str], Sequence[Phase]] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    has_page: bool = True
    builds: tuple[int, Any] = (404, {"detail": "page 'api/builds' does not exist"})
    down: int = 0
    is_earlier: bool = False

    def add(self, dag_id: str, *phases: Phase, paused: bool = False) -> None:
        """A DAG whose runs go through these phases, one per query of the run; the last one stays."""
        name = dag_id.replace(".", "/")
        self.dags[dag_id] = {"dag_id": dag_id, "dag_display_name": name, "is_paused": paused}
        self.phases[dag_id] = phases or (("queued", None),)

    def run_id(self, dag_id: str) -> str:
        """Airflow's id of the only run of a DAG."""
        (found,) = [run_id for dag, run_id in self.runs if dag == dag_id]
        return found

    def result(self, method: str, path: str, query: Mapping[str, str], body: Any) -> tuple[int, Any]:
        """Status code and JSON; a text is the page of an unknown path."""
        self.requests.append((method, path))
        if path == "/auth/token":
            good = body == {"username": "ci", "password": "s3cret-word"}
            return (201, {"access_token": "t1"}) if good else (401, {"detail": "Invalid credentials"})
        if path == "/certification/api/builds":
            return self.builds
        if path.startswith("/certification/api/runs/"):
            return self._facts(path.rsplit("/", 1)[-1])
        if path == "/api/v2/dags":
            listed = list(self.dags.values())
            first = int(query["offset"])
            return 200, {"dags": listed[first : first + int(query["limit"])], "total_entries": len(listed)}
        if path.endswith("/taskInstances"):
            run = {"dag_id": "d", "dag_run_id": "r"}
            tasks = [{**run, "task_id": "resolve", "state": "failed"}, {**run, "task_id": "train", "state": None}]
            return 200, {"task_instances": tasks, "total_entries": len(tasks)}
        found = re.fullmatch(r"/api/v2/dags/([^/]+)(?:/dagRuns(?:/([^/]+))?)?", path)
        if found is None:
            return 200, ""
        dag_id, run_id = (unquote(part or "") for part in found.groups())
        return self._dag(method, path, dag_id, run_id, body)

    def _dag(self, method: str, path: str, dag_id: str, run_id: str, body: Any) -> tuple[int, Any]:
        if dag_id not in self.dags:
            return 404, {"detail": "not found"}
        if not path.endswith("/dagRuns") and not run_id:
            self.dags[dag_id].update(body or {})
            return 200, self.dags[dag_id]
        if method == "POST":
            return self._trigger(dag_id, body)
        run = self.runs.get((dag_id, run_id))
        if run is None:
            return 404, {"detail": "not found"}
        if method == "PATCH":
            run.update(body)
            return 200, run
        self._advance(dag_id, run)
        return 200, run

    def _trigger(self, dag_id: str, body: Any) -> tuple[int, Any]:
        if dag_id in self.refused:
            return 400, {"detail": self.refused[dag_id]}
        key = (dag_id, body["dag_run_id"])
        if key in self.runs:
            return 409, {"detail": {"reason": "Unique constraint violation"}}
        self.course[key] = self.phases[dag_id]
        self.runs[key] = {
            "dag_id": dag_id,
            "dag_run_id": body["dag_run_id"],
            "state": "queued",
            "run_after": AFTER,
            "conf": body["conf"],
            "looks": 0,
        }
        return 200, self.runs[key]

    def _advance(self, dag_id: str, run: dict[str, Any]) -> None:
        phases = self.course[dag_id, run["dag_run_id"]]
        state, facts = phases[min(run["looks"], len(phases) - 1)]
        run.update(looks=run["looks"] + 1, state=state, facts=facts)

    def _facts(self, wanted: str) -> tuple[int, Any]:
        if not self.has_page:
            return 200, "<html>"
        for run in self.runs.values():
            ours = DagRun.model_validate(run).runs[self.is_earlier]
            if ours == wanted and run.get("facts"):
                return 200, {**run["facts"], "run": {**run["facts"]["run"], "id": ours}}
        return 404, {"detail": "no such run"}


def _handler(airflow: FakeAirflow) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            allowed = parts.path == "/auth/token" or self.headers.get("authorization") in (
                "Bearer t1",
                "Bearer t2",
            )
            if airflow.down:
                airflow.down -= 1
                code, report = 503, {"detail": "down"}
            elif not allowed:
                code, report = 401, {"detail": "Not authenticated"}
            else:
                code, report = airflow.result(self.command, parts.path, query, body)
            kind = "text/html" if isinstance(report, str) else "application/json"
            data = report.encode() if isinstance(report, str) else json.dumps(report).encode()
            self.send_response(code)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = _serve  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    return Handler


@contextmanager
def serve() -> Iterator[FakeAirflow]:
    """A fake Airflow on a port of its own."""
    airflow = FakeAirflow()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(airflow))
    airflow.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield airflow
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
