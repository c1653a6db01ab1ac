"""Events of a run on several machines: each machine sees the end of the events of the others."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tipcflow.domain import InfraError, Status
from tipcflow.execute.events import event_writer, events_path, flush_events, latest_events
from tipcflow.execute.objects import object_store, shared_events
from tipcflow.execute.objects.shared_events import MOST, end_of, machine
from tipcflow.execute.progress import Event, Kind

pytestmark = pytest.mark.slow

LARGE = 10**6


@pytest.fixture(autouse=True)
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "objects").mkdir()
    monkeypatch.setenv("TIPCFLOW_STORE", f"file://{tmp_path}/objects")
    monkeypatch.setattr(shared_events, "_away_until", 0.0)
    yield tmp_path / "objects" / "events" / "r"
    shared_events._known.clear()


def ended(step: str, at: float) -> Event:
    return Event(Kind.STEP_ENDED, "exit code 0", step=step, status=Status.PASS, at=at)


def texts(home: Path) -> list[str]:
    return [event.step for event in latest_events(home, "r", LARGE)]


def until(when: object, seconds: float = 60) -> None:
    assert callable(when)
    deadline = time.monotonic() + seconds
    while not when():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_events_of_other_machines_are_read_in_order(tmp_path: Path) -> None:
    homes = [tmp_path / "a", tmp_path / "b"]
    writers = [event_writer(home, "r") for home in homes]
    for number in range(4):
        writers[number % 2](ended(f"s{number}", float(number)))
    for home in homes:
        flush_events(home, "r")
    for home in (*homes, tmp_path / "reader"):
        assert texts(home) == ["s0", "s1", "s2", "s3"]
    writers[0](ended("s4", 4.0))
    flush_events(homes[0], "r")
    assert texts(tmp_path / "reader") == ["s0", "s1", "s2", "s3", "s4"]


def test_end_of_a_step_is_visible_without_a_flush(tmp_path: Path) -> None:
    write = event_writer(tmp_path / "a", "r")
    write(ended("s0", 1.0))
    until(lambda: texts(tmp_path / "b") == ["s0"])


def test_other_events_are_written_every_few_seconds(tmp_path: Path, objects: Path) -> None:
    write = event_writer(tmp_path / "a", "r")
    for number in range(20):
        write(Event(Kind.LOG, f"line {number}\n", step="train", node="a"))
    assert not objects.exists()
    flush_events(tmp_path / "a", "r")
    (written,) = objects.iterdir()
    assert written.name == f"{machine(tmp_path / 'a')}.jsonl"
    assert written.read_bytes() == events_path(tmp_path / "a", "r").read_bytes()


def test_only_whole_lines_of_the_end_are_written(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("".join(f"line {number}\n" for number in range(1000)))
    size = path.stat().st_size
    assert end_of(path, size, 99).splitlines()[0] == b"line 990"
    assert end_of(path, size, 10**9) == path.read_bytes()
    assert end_of(path, 7, 100) == b"line 0\n"
    assert MOST < LARGE


def test_store_that_is_away_delays_neither_tasks_nor_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_events, "FLUSH_S", 0.2)
    monkeypatch.setattr(shared_events, "READ_S", 0.2)
    monkeypatch.setattr(object_store.ObjectStore, "_system", lambda _: threading.Event().wait())
    began = time.monotonic()
    write = event_writer(tmp_path / "a", "r")
    for number in range(50):
        write(ended(f"s{number}", float(number)))
        assert len(texts(tmp_path / "a")) == number + 1
    flush_events(tmp_path / "a", "r")
    assert time.monotonic() - began < 30, "without a pause after the first error it takes longer"


def test_refused_events_are_written_after_a_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        calls.append(1)
        raise InfraError("no permission")

    calls: list[int] = []
    put = object_store.ObjectStore.put
    monkeypatch.setattr(object_store.ObjectStore, "put", refuse)
    monkeypatch.setattr(shared_events, "PAUSE_S", 2.0)
    write = event_writer(tmp_path / "a", "r")
    write(ended("s0", 0.0))
    until(lambda: calls == [1])
    write(ended("s1", 1.0))
    flush_events(tmp_path / "a", "r")
    assert calls == [1]
    monkeypatch.setattr(object_store.ObjectStore, "put", put)

    def written() -> bool:
        flush_events(tmp_path / "a", "r")
        return texts(tmp_path / "b") == ["s0", "s1"]

    until(written)


def test_without_a_store_no_thread_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIPCFLOW_STORE", "")
    monkeypatch.setattr(threading, "Thread", None)
    write = event_writer(tmp_path / "a", "r")
    write(ended("s0", 0.0))
    flush_events(tmp_path / "a", "r")
    assert texts(tmp_path / "a") == ["s0"]
    assert texts(tmp_path / "b") == []
