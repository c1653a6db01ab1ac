"""Signals raise once, and never while a hold lasts."""

# ruff: noqa: PT012 (the blocks are what is tested)

import os
import signal
import threading

import pytest

from devcluster.signals import Interrupted, InterruptGuard

pytestmark = pytest.mark.process


def send(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_raises_in_the_body(number: signal.Signals) -> None:
    gate, before = InterruptGuard(), signal.getsignal(number)
    with pytest.raises(Interrupted, match=number.name), gate.installed():
        assert signal.getsignal(number) is not before
        send(number)
    assert signal.getsignal(number) is before


def test_signal_waits_until_the_end_of_a_hold() -> None:
    gate, done = InterruptGuard(), []
    with pytest.raises(Interrupted), gate.installed():
        with gate.hold(), gate.hold():
            send(signal.SIGINT)
            done.append("inside")
        done.append("never")
    assert done == ["inside"]


def test_a_held_set_up_may_stop_at_its_safe_points() -> None:
    gate = InterruptGuard()
    with pytest.raises(Interrupted), gate.installed(), gate.hold():
        gate.check()
        send(signal.SIGTERM)
        gate.check()
        pytest.fail("not stopped")


def test_a_second_signal_does_not_break_the_clean_up() -> None:
    gate, done = InterruptGuard(), []
    with pytest.raises(Interrupted, match="SIGINT"), gate.installed():
        try:
            send(signal.SIGINT)
        finally:
            send(signal.SIGTERM)
            with gate.hold():
                send(signal.SIGINT)
            done.append("cleaned")
    assert done == ["cleaned"]


def test_another_error_is_not_hidden_by_a_waiting_signal() -> None:
    gate = InterruptGuard()
    with pytest.raises(ValueError, match="mine"), gate.installed(), gate.hold():
        send(signal.SIGINT)
        raise ValueError("mine")


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with InterruptGuard().installed():
            send(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_nested_use_keeps_the_handlers_until_the_outer_end() -> None:
    gate = InterruptGuard()
    with pytest.raises(Interrupted), gate.installed():
        with gate.installed():
            pass
        send(signal.SIGTERM)


def test_signal_hold_does_nothing_off_the_main_thread() -> None:
    gate, seen = InterruptGuard(), []

    def work() -> None:
        with gate.installed(), gate.hold():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    before = signal.getsignal(signal.SIGINT)
    thread.start()
    thread.join()
    assert seen == [before]
