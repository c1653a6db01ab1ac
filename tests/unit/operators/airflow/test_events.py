"""What happens in a run, as lines of a task's log and as the run's events."""

import os
import time
from pathlib import Path

import pytest

from tipcflow.domain import Status
from tipcflow.execute.events import events_path, read_events
from tipcflow.execute.progress import Event, Kind
from tipcflow.execute.sweeps.old_events import EVENTS_S
from tipcflow_operators.airflow.events import TaskLog, listener


class Lines:
    """A logger that stores its messages."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, event: str, *args: object) -> None:
        self.lines.append(event % args)

    def warning(self, event: str, *args: object) -> None:
        self.lines.append("WARNING " + event % args)


@pytest.fixture
def log() -> Lines:
    return Lines()


def output(text: str, node: str = "node-a", leg: str = "") -> Event:
    return Event(Kind.LOG, text, step="v/train", node=node, leg=leg)


def test_output_becomes_whole_lines(log: Lines) -> None:
    task_log = TaskLog(log)
    for piece in ("epoch 1, lo", "ss 0.5\nepoch 2", ", loss 0.25\n\nepoch 3"):
        task_log.take(output(piece))
    assert log.lines == ["node-a | epoch 1, loss 0.5", "node-a | epoch 2, loss 0.25", "node-a | "]


def test_nodes_and_legs_do_not_run_into_each_other(log: Lines) -> None:
    task_log = TaskLog(log)
    task_log.take(output("from a, "))
    task_log.take(output("from b\n", node="node-b"))
    task_log.take(output("leg\n", leg="cpu_onednn_on"))
    task_log.take(output("still a\n"))
    assert log.lines == ["node-b | from b", "node-a cpu_onednn_on | leg", "node-a | from a, still a"]


def test_unfinished_line_is_written_once_at_the_end(log: Lines) -> None:
    task_log = TaskLog(log)
    task_log.take(output("done\nlast words"))
    assert log.lines == ["node-a | done"]
    task_log.flush()
    task_log.flush()
    assert log.lines == ["node-a | done", "node-a | last words"]


def test_lines_of_a_windows_tool_and_progress_bars_end_cleanly(log: Lines) -> None:
    TaskLog(log).take(output("one\r\n10%\r20%\r\n"))
    assert log.lines == ["node-a | one", "node-a | 10%\r20%"]


def test_progress_bar_without_newlines_keeps_only_the_last_state(log: Lines) -> None:
    task_log = TaskLog(log)
    for percent in range(2000):
        task_log.take(output(f"\r{percent:4d} of 2000"))
    task_log.take(output("\n"))
    (line,) = log.lines
    assert line.endswith("1999 of 2000")
    assert len(line) < 5000


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (Event(Kind.NOTE, "judging"), "judging"),
        (Event(Kind.STATE, "waiting at the barrier", node="node-a"), "node-a: waiting at the barrier"),
        (
            Event(Kind.LEG, "exit code 1", node="node-a", leg="cpu_on", status=Status.FAILED),
            "leg node-a cpu_on: failed: exit code 1",
        ),
        (Event(Kind.LEG, node="node-a", leg="cpu_on", status=Status.PASS), "leg node-a cpu_on: pass"),
        (Event(Kind.STEP_ENDED, step="v/train", status=Status.PASS), "v/train: pass"),
        (
            Event(Kind.STEP_ENDED, "no space left", step="v/train", status=Status.INFRA_FAILURE),
            "v/train: infra_failure: no space left",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_lines_of_other_events_are_plain_text(log: Lines, event: Event, line: str) -> None:
    TaskLog(log).take(event)
    assert log.lines == [line]


@pytest.mark.parametrize(
    "event",
    [
        # The exit code of a leg, as the triggerer saw it; its status comes when the task looks.
        Event(Kind.LEG, '{"exit_code": 0}', node="node-a", leg="cpu_on"),
        Event(Kind.STEP_ENDED, "without a status", step="v/train"),
        Event(Kind.STEP_STARTED, step="v/train"),
        Event(Kind.RUN, "run 1"),
        Event(Kind.NODE, "node-a"),
        Event(Kind.CHECKS, "fine", status=Status.PASS),
    ],
    ids=lambda event: event.kind.value,
)
def test_events_for_the_page_have_no_line(log: Lines, event: Event) -> None:
    TaskLog(log).take(event)
    assert log.lines == []


def test_percent_signs_of_a_training_are_not_format_specifiers(log: Lines) -> None:
    TaskLog(log).take(output("accuracy 97 %s %d\n"))
    assert log.lines == ["node-a | accuracy 97 %s %d"]


def test_both_are_reported(log: Lines, tmp_path: Path) -> None:
    take = listener(tmp_path, "run-1", TaskLog(log))
    events = [
        output("epoch 1\n"),
        Event(Kind.STEP_STARTED, step="v/train"),
        Event(Kind.STEP_ENDED, step="v/train", status=Status.PASS),
    ]
    for event in events:
        take(event)
    assert log.lines == ["node-a | epoch 1", "v/train: pass"]
    assert read_events(tmp_path, "run-1")[0] == events


def test_secrets_are_masked_wherever_a_piece_of_output_ends(log: Lines, tmp_path: Path) -> None:
    task_log = TaskLog(log)
    take = listener(tmp_path, "run-1", task_log)
    for piece in (
        "url https://x/?to",
        "ken=SECR",
        "ET123\nenv {'A': 'SECRET",
        "123'}\nAuthorization: Bearer SECRET123",
    ):
        take(output(piece))
    take(Event(Kind.STEP_ENDED, "password=SECRET123", step="v/train", node="node-a", status=Status.FAILED))
    take(output("the end, api_key=SECRET123"))
    task_log.flush()
    texts = [event.text for event in read_events(tmp_path, "run-1")[0]]
    assert "SECRET" not in str(texts)
    assert "".join(texts[:-2]) == "url https://x/?token=***\nenv {…}\nAuthorization: ***"
    assert texts[-2:] == ["password=***", "the end, api_key=***"]
    assert "SECRET" not in str(log.lines)
    assert log.lines[0] == "node-a | url https://x/?token=***"


def test_a_listener_removes_old_event_files_of_its_home(tmp_path: Path, log: Lines) -> None:
    old = events_path(tmp_path, "old")
    old.parent.mkdir(parents=True)
    old.write_text("{}\n")
    os.utime(old, (time.time() - EVENTS_S - 60,) * 2)
    listener(tmp_path, "new", TaskLog(log))
    until = time.monotonic() + 30
    while old.exists():
        assert time.monotonic() < until, "the file was not removed"
        time.sleep(0.01)
