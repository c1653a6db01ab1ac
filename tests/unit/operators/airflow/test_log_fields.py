"""Log lines in Airflow's JSON format have the fields of their run, step and node."""

import asyncio
import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from airflow.sdk.log import logging_processors
from structlog.contextvars import clear_contextvars

from tipcflow.domain import Status
from tipcflow.execute.progress import Event, Kind
from tipcflow_operators.airflow import log_fields
from tipcflow_operators.airflow.events import TaskLog, listener

RUN = "20261121t093005-toy-0a1b"
OUTPUT = Event(Kind.LOG, "epoch 1\nepoch 2", step="v/train", node="node-a")


class TaskFile:
    """A task's log file, written by Airflow's processors."""

    def __init__(self) -> None:
        self._file = io.BytesIO()
        processors = logging_processors(json_output=True)
        self.log: Any = structlog.wrap_logger(structlog.BytesLogger(self._file), processors=processors)

    @property
    def lines(self) -> list[tuple[str, str, str, str]]:
        """Event, run, step and node of each line."""
        parsed = [json.loads(line) for line in self._file.getvalue().splitlines()]
        names = ("event", "tipcflow_run", "tipcflow_step", "tipcflow_node")
        return [tuple(line.get(name, "") for name in names) for line in parsed]  # type: ignore[misc]


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch) -> Iterator[TaskFile]:
    monkeypatch.setenv("AIRFLOW__LOGGING__JSON_LOGS", "True")
    log_fields.has_fields.cache_clear()
    clear_contextvars()
    yield TaskFile()
    clear_contextvars()
    log_fields.has_fields.cache_clear()


def test_lines_have_the_fields_that_are_named(file: TaskFile) -> None:
    file.log.info("before")
    log_fields.name_fields(RUN)
    file.log.info("acquired")
    log_fields.name_fields(RUN, "v/train", "node-a")
    file.log.info("trained")
    assert file.lines == [
        ("before", "", "", ""),
        ("acquired", RUN, "", ""),
        ("trained", RUN, "v/train", "node-a"),
    ]


def test_output_of_a_job_has_the_fields_also_in_a_thread(file: TaskFile, tmp_path: Path) -> None:
    task_log = TaskLog(file.log)
    take = listener(tmp_path, RUN, task_log)
    thread = threading.Thread(target=take, args=(OUTPUT,))
    thread.start()
    thread.join()
    take(Event(Kind.STEP_ENDED, step="v/eval", status=Status.PASS))
    log_fields.name_fields(RUN)
    task_log.flush()
    assert file.lines == [
        ("node-a | epoch 1", RUN, "v/train", "node-a"),
        ("v/eval: pass", RUN, "v/eval", ""),
        ("node-a | epoch 2", RUN, "v/train", "node-a"),
    ]


def test_fields_of_one_trigger_do_not_reach_another(file: TaskFile) -> None:
    async def trigger(run: str) -> None:
        log_fields.name_fields(run)
        await asyncio.sleep(0)
        await asyncio.to_thread(file.log.info, f"waiting {run}")

    async def both() -> None:
        await asyncio.gather(asyncio.create_task(trigger("a")), asyncio.create_task(trigger("b")))

    asyncio.run(both())
    assert sorted(file.lines) == [("waiting a", "a", "", ""), ("waiting b", "b", "", "")]


def test_lines_have_no_fields_without_json_logs(file: TaskFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__LOGGING__JSON_LOGS", "False")
    log_fields.has_fields.cache_clear()
    log_fields.name_fields(RUN, "v/train", "node-a")
    TaskLog(file.log).take(OUTPUT)
    assert file.lines == [("node-a | epoch 1", "", "", "")]
