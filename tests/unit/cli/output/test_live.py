"""The live display never ends a run: neither when its reader is gone nor when a signal is ignored."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from tipcflow.cli.commands.signals import cancel_on_signals

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
