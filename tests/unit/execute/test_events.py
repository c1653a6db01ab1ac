"""Events written by one process and read by another."""

import threading
from pathlib import Path

import pytest

from tipcflow.domain import Status
from tipcflow.execute.events import event_writer, events_path, read_events
from tipcflow.execute.progress import Event, Kind


def test_written_events_are_read_again(tmp_path: Path) -> None:
    event = Event(Kind.STEP_ENDED, "a reason", step="s/train", node="a", leg="cpu", status=Status.FAILED, at=12.5)
    event_writer(tmp_path, "r")(event)
    assert read_events(tmp_path, "r")[0] == [event]


def test_reading_continues_at_the_offset_and_leaves_partial_lines(tmp_path: Path) -> None:
    write = event_writer(tmp_path, "r")
    assert read_events(tmp_path, "r") == ([], 0)
    write(Event(Kind.NOTE, "one"))
    first, offset = read_events(tmp_path, "r")
    with events_path(tmp_path, "r").open("a") as file:
        file.write('{"kind": "note", "text": "tw')
    assert read_events(tmp_path, "r", offset) == ([], offset)
    with events_path(tmp_path, "r").open("a") as file:
        file.write('o"}\nrubbish\n')
    second, _ = read_events(tmp_path, "r", offset)
    assert [event.text for event in first + second] == ["one", "two"]


def test_lines_of_several_writers_stay_whole(tmp_path: Path) -> None:
    def many(name: str) -> None:
        write = event_writer(tmp_path, "r")
        for number in range(200):
            write(Event(Kind.LOG, f"{name} {number} " + "x" * 5000))

    threads = [threading.Thread(target=many, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    events, _ = read_events(tmp_path, "r")
    assert len(events) == 600


def test_output_is_not_repeated_without_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tipcflow.execute.events.OUTPUT_LIMIT", 20_000)
    writers = [event_writer(tmp_path, "r"), event_writer(tmp_path, "r")]
    for number in range(40):
        writers[number % 2](Event(Kind.LOG, f"{number:04} " + "x" * 1000, step="train", node="a"))
    writers[0](Event(Kind.STEP_ENDED, "ended", step="train", status=Status.PASS))
    events, _ = read_events(tmp_path, "r")
    assert events_path(tmp_path, "r").stat().st_size < 25_000
    output = [event.text for event in events if event.kind is Kind.LOG]
    assert output[0].startswith("0000 ")
    assert "see the step's logs" in output[-1]
    assert len([text for text in output if "see the step's logs" in text]) == 2
    assert events[-1].status is Status.PASS
