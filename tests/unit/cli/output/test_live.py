"""The live display never ends a run: neither when its reader is gone nor when a signal is ignored."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from tipcflow.cli.commands.signals import cancel_on_signals
from tipcflow.cli.output.live import LiveDisplay
from tipcflow.domain import Status
from tipcflow.execute.progress import Event, Kind

CHILD = """
from tipcflow.cli.output.live import LiveDisplay
from tipcflow.execute.progress import Event, Kind
display = LiveDisplay()
for number in range(20):
    display.take(Event(Kind.NOTE, "x" * 100_000))
display.close()
print("went on")
"""


def test_a_reader_that_has_gone_stops_nothing() -> None:
    """As in `tipcflow run … 2>&1 | head`."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-c", CHILD], stdout=subprocess.PIPE, stderr=writer, check=False, timeout=60
        )
    finally:
        os.close(writer)
    assert done.stdout == b"went on\n"


def test_an_ignored_signal_stays_ignored() -> None:
    cancel = threading.Event()
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with cancel_on_signals(cancel, lambda _: None):
            os.kill(os.getpid(), signal.SIGHUP)
            assert not cancel.is_set()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_signal_cancels_even_if_printing_fails() -> None:
    cancel = threading.Event()

    def broken(_: str) -> None:
        raise OSError("the terminal has gone")

    with pytest.raises(OSError, match="gone"), cancel_on_signals(cancel, broken):
        os.kill(os.getpid(), signal.SIGTERM)
    assert cancel.is_set()


def test_the_last_training_line_is_printed_before_the_end_of_its_step(capfd: pytest.CaptureFixture[str]) -> None:
    display = LiveDisplay()

    def log(step: str, at: float, text: str) -> None:
        display.take(Event(Kind.LOG, text, step=step, node="a", at=at))

    display.take(Event(Kind.STEP_STARTED, step="v/train", node="a", at=1))
    for number in range(1, 4):
        log("v/train", 10 + number, f"[Epoch 1, iter: {number}] loss: 0.5, ips: 3 images/s\n")
    display.take(Event(Kind.STEP_ENDED, step="v/train", node="a", status=Status.PASS, at=15))
    display.take(Event(Kind.STEP_STARTED, step="v/eval", node="a", at=15))
    log("v/eval", 30, "loading\n")
    log("v/eval", 40, "[Epoch 0, iter: 9] loss: 0.4, ips: 3 images/s\n")
    log("v/eval", 50, "loading\n")
    printed = [line.split("  ", 1)[1] for line in capfd.readouterr().err.splitlines()]
    assert printed == [
        "v/train started on a",
        "a: [Epoch 1, iter: 1] loss: 0.5, ips: 3 images/s",
        "a: [Epoch 1, iter: 3] loss: 0.5, ips: 3 images/s",
        "v/train: pass after 14.0 s",
        "v/eval started on a",
        "a: [Epoch 0, iter: 9] loss: 0.4, ips: 3 images/s",
    ]
