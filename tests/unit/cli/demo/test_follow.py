"""Watching a DAG run: its progress, its end, Ctrl-C, and whatever breaks meanwhile."""

import itertools
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tipcflow.airflow_api import Airflow, DagRun
from tipcflow.cli.demo import follow as demo_follow
from tipcflow.cli.demo.follow import Ended, broken_tasks, end_leftovers, follow, wait_for_dag
from tipcflow.domain import ConfigError, InfraError
from tipcflow.execute.events import event_writer
from tipcflow.execute.progress import Event, Kind

DAG = "s.m.f"
RUNS = f"/api/v2/dags/{DAG}/dagRuns"
ONE = f"{RUNS}/demo__1"
RUN: dict[str, Any] = {
    "dag_id": DAG,
    "dag_run_id": "demo__1",
    "state": "running",
    "run_after": "2026-11-21T12:00:00Z",
}
DAG_RUN = DagRun.model_validate(RUN)


class Airflows:
    """An api-server with scripted responses; the last response of a path stays."""

    def __init__(self, **answers: list[Any]) -> None:
        self.answers = {path: list(report) for path, report in answers.items()}
        self.patched: list[dict[str, str]] = []
        self.client = Airflow(
            "http://airflow.test", token="t", deadline_s=0.5, transport=httpx.MockTransport(self._answer)
        )

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.method == "PATCH":
            self.patched.append(json.loads(request.content))
            return httpx.Response(200, json={**RUN, "state": "failed"})
        left = self.answers[request.url.path]
        report = left.pop(0) if len(left) > 1 else left[0]
        return report if isinstance(report, httpx.Response) else httpx.Response(200, json=report)


def states(*names: str) -> list[dict[str, Any]]:
    return [{**RUN, "state": name} for name in names]


class Stack:
    """An Airflow whose dead components are listed in `dead`."""

    def __init__(self, folder: Path) -> None:
        self.airflow_home = folder / "airflow"
        self.dead = ""
        self.since = 1000.0

    def check(self) -> None:
        if self.dead:
            raise InfraError(f"Airflow's {self.dead} ended with exit code 1")


class Display:
    """Takes what LiveDisplay takes; calls `when` at an event of that text."""

    def __init__(self, text: str = "", when: Callable[[], object] = lambda: None) -> None:
        self.seen: list[str] = []
        self._text, self._when = text, when

    def bind(self, _: object) -> None:
        pass

    def note(self, text: str) -> None:
        self.take(Event(Kind.NOTE, text))

    def take(self, event: Event) -> None:
        self.seen.append(event.text)
        if self._text and event.text == self._text:
            self._when()


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return Stack(tmp_path)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_follow, "_POLL_S", 0.0)
    monkeypatch.setattr(demo_follow, "_EVENTS_EVERY_S", 0.0)


def watch(airflow: Airflows, stack: Stack, home: Path, display: Display) -> Ended:
    return follow(airflow.client, stack, None, home, DAG_RUN, display)  # type: ignore[arg-type]


def test_events_are_shown_until_the_run_has_ended(tmp_path: Path, stack: Stack) -> None:
    write = event_writer(tmp_path, DAG_RUN.run)
    for text in ("first", "second"):
        write(Event(Kind.NOTE, text))
    write(Event(Kind.RUN, "is known"))
    display = Display("second", lambda: write(Event(Kind.NOTE, "third")))
    airflow = Airflows(**{ONE: states("queued", "running", "success")})
    assert watch(airflow, stack, tmp_path, display) == Ended(cancelled=False, stopped=False)
    assert display.seen == [DAG_RUN.run, "first", "second", "third"]
    assert airflow.patched == []


def test_ctrl_c_marks_the_run_as_failed_and_waits_for_its_end(tmp_path: Path, stack: Stack) -> None:
    event_writer(tmp_path, DAG_RUN.run)(Event(Kind.NOTE, "training"))
    display = Display("training", lambda: signal.raise_signal(signal.SIGINT))
    airflow = Airflows(**{ONE: states("running", "running", "running", "running", "failed")})
    assert watch(airflow, stack, tmp_path, display) == Ended(cancelled=True, stopped=True)
    assert airflow.patched == [{"state": "failed"}]
    assert "SIGINT: stopping the run and cleaning up" in display.seen


def test_signal_after_the_end_of_a_run_cancels_nothing(tmp_path: Path, stack: Stack) -> None:
    event_writer(tmp_path, DAG_RUN.run)(Event(Kind.NOTE, "judging"))
    display = Display("judging", lambda: signal.raise_signal(signal.SIGTERM))
    airflow = Airflows(**{ONE: states("success")})
    assert watch(airflow, stack, tmp_path, display) == Ended(cancelled=False, stopped=True)
    assert airflow.patched == []


def test_a_cancelled_run_that_does_not_end_has_a_deadline(
    tmp_path: Path, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_follow, "CANCEL_DEADLINE_S", 0.2)
    event_writer(tmp_path, DAG_RUN.run)(Event(Kind.NOTE, "training"))
    display = Display("training", lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(InfraError, match=f"cancelled run {DAG_RUN.run} did not end within"):
        watch(Airflows(**{ONE: states("running")}), stack, tmp_path, display)


def test_a_run_has_a_deadline(tmp_path: Path, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_follow, "RUN_DEADLINE_S", 0.2)
    with pytest.raises(InfraError, match=f"run {DAG_RUN.run} did not end within"):
        watch(Airflows(**{ONE: states("running")}), stack, tmp_path, Display())


def test_dead_component_ends_the_demo(tmp_path: Path, stack: Stack) -> None:
    event_writer(tmp_path, DAG_RUN.run)(Event(Kind.NOTE, "training"))
    display = Display("training", lambda: setattr(stack, "dead", "scheduler"))
    with pytest.raises(InfraError, match="Airflow's scheduler ended"):
        watch(Airflows(**{ONE: states("running")}), stack, tmp_path, display)


def test_a_dead_api_server_is_a_better_reason_than_a_missing_response(tmp_path: Path, stack: Stack) -> None:
    def die() -> httpx.Response:
        stack.dead = "api-server"
        return httpx.Response(503)

    airflow = Airflows(**{ONE: [RUN]})
    airflow._answer = lambda _: die()  # type: ignore[method-assign]
    airflow.client = Airflow(
        "http://airflow.test", token="t", deadline_s=0.3, transport=httpx.MockTransport(lambda _: die())
    )
    with pytest.raises(InfraError, match="Airflow's api-server ended"):
        watch(airflow, stack, tmp_path, Display())


def dags(*names: str) -> dict[str, Any]:
    return {"dags": [{"dag_id": name, "is_paused": True} for name in names], "total_entries": len(names)}


NO_ERROR = {"import_errors": [], "total_entries": 0}
ERROR = {
    "import_errors": [
        {"filename": "fixed.py", "stack_trace": "old", "timestamp": "1970-01-01T00:00:00Z"},
        {
            "filename": "chains_s.py",
            "stack_trace": "Traceback\nSyntaxError: no",
            "timestamp": "2026-11-21T12:00:00Z",
        },
    ],
    "total_entries": 2,
}


def test_a_dag_is_waited_for(stack: Stack) -> None:
    airflow = Airflows(**{"/api/v2/dags": [dags(), dags("x"), dags("x", DAG)], "/api/v2/importErrors": [NO_ERROR]})
    wait_for_dag(airflow.client, stack, DAG)  # type: ignore[arg-type]


def test_a_dag_file_that_cannot_be_read_is_reported(stack: Stack) -> None:
    airflow = Airflows(**{"/api/v2/dags": [dags()], "/api/v2/importErrors": [NO_ERROR, ERROR]})
    with pytest.raises(ConfigError) as caught:
        wait_for_dag(airflow.client, stack, DAG)  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"Airflow cannot import its DAG files; DAG {DAG} is missing\nchains_s.py:\n  Traceback\n  SyntaxError: no"
    )


def test_missing_dag_brings_near_names(stack: Stack) -> None:
    missing = httpx.Response(404, json={"detail": "not found"})
    airflow = Airflows(
        **{
            "/api/v2/dags": [dags("s.m.g")],
            "/api/v2/importErrors": [NO_ERROR],
            f"/api/v2/dags/{DAG}": [missing],
        }
    )
    with pytest.raises(ConfigError, match=r"has no DAG s.m.f\n  hint: near: s.m.g"):
        wait_for_dag(airflow.client, stack, DAG, deadline_s=0.0)  # type: ignore[arg-type]


def test_runs_of_killed_demos_are_ended_and_no_others(stack: Stack) -> None:
    left = [{**RUN, "dag_run_id": name} for name in ("demo__1", "manual__1", "ci__1")]
    airflow = Airflows(**{"/api/v2/dags/~/dagRuns": [{"dag_runs": left, "total_entries": 3}]})
    messages: list[str] = []
    end_leftovers(airflow.client, messages.append)
    assert airflow.patched == [{"state": "failed"}]
    assert messages == [f"stopped run {DAG_RUN.run}, left behind by a killed demo"]


def test_log_of_a_broken_task_is_shown_readably(stack: Stack) -> None:
    task = {"dag_id": DAG, "dag_run_id": "demo__1", "map_index": -1, "try_number": 1}
    tasks = [{**task, "task_id": "resolve", "state": "failed"}, {**task, "task_id": "train", "state": "skipped"}]
    log = stack.airflow_home / "logs" / f"dag_id={DAG}" / "run_id=demo__1" / "task_id=resolve" / "attempt=1.log"
    log.parent.mkdir(parents=True)
    error = {"event": "Task failed", "error_detail": [{"exc_type": "RuntimeError", "exc_value": "no such thing"}]}
    lines = itertools.chain(
        [{"event": "::group::Pre Execute"}, {"event": "resolving"}, error, {"event": "::endgroup::"}]
    )
    log.write_text("\n".join(map(json.dumps, lines)) + "\nnot JSON\n")
    airflow = Airflows(**{f"{ONE}/taskInstances": [{"task_instances": tasks, "total_entries": 2}]})
    assert broken_tasks(airflow.client, stack, DAG_RUN) == (  # type: ignore[arg-type]
        f"task resolve failed; the end of {log}:\n"
        "  resolving\n  Task failed\n  RuntimeError: no such thing\n  not JSON"
    )
    log.unlink()
    assert broken_tasks(airflow.client, stack, DAG_RUN) == (  # type: ignore[arg-type]
        f"task resolve failed; it has no log at {log}"
    )
