"""The latest events of an active run."""

from pathlib import Path

import pytest

from tipcflow.domain import Status
from tipcflow.execute.events import event_writer, events_path
from tipcflow.execute.progress import Event, Kind
from tipcflow_pages.data.live import Progress, progress


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write = event_writer(tmp_path, "r1")
    write(Event(Kind.STEP_STARTED, step="train", node="a,b", at=1.0))
    write(Event(Kind.LOG, "[Epoch 1, iter: 10] loss: 0.5, lr: 0.1, avg_ips: 10\n", step="train", node="b", at=2.0))
    write(Event(Kind.LOG, "nothing of the training\n", step="train", node="a", at=3.0))
    write(Event(Kind.LEG, "", step="infer", leg="cpu", status=Status.PASS, at=4.0))
    write(Event(Kind.STATE, "heartbeat", step="infer", at=5.0))
    write(Event(Kind.STEP_ENDED, "exit code 1", step="train", status=Status.FAILED, at=6.0))
    return tmp_path


def test_events_are_newest_first_in_words(home: Path) -> None:
    found = progress(home, "r1")
    assert [(one.step, one.text, one.status) for one in found.events] == [
        ("train", "exit code 1", Status.FAILED),
        ("infer", "cpu", Status.PASS),
        ("train", "started on a, b", None),
    ]
    assert found.last_at == 6.0


def test_last_training_line_is_kept_per_node(home: Path) -> None:
    ((node, line),) = progress(home, "r1").training
    assert node == "b"
    assert "loss: 0.5" in line


def test_run_without_an_event_file_has_no_progress(home: Path) -> None:
    assert progress(home, "r2") == Progress()
    assert progress(home, "../runs/r1") == Progress()


def test_end_of_a_large_file_is_read(home: Path) -> None:
    path = events_path(home, "r1")
    line = path.read_text().splitlines()[0] + "\n"
    with path.open("a") as file:
        file.write(line * 20_000)
    found = progress(home, "r1")
    assert {one.text for one in found.events} == {"started on a, b"}
    assert len(found.events) == 60
