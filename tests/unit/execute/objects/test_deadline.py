"""Calls with a deadline: a call that never returns is left behind, and errors are those of the call."""

import threading
import time

import pytest

from tipcflow.domain import InfraError
from tipcflow.execute.objects.deadline import AT_ONCE, for_each, within


def test_result_and_error_of_the_call_are_returned() -> None:
    assert within(5, "cannot add", lambda: 1 + 1) == 2
    with pytest.raises(ZeroDivisionError):
        within(5, "cannot divide", lambda: 1 / 0)
    with pytest.raises(TimeoutError, match="of the call"):
        within(5, "cannot wait", lambda: (_ for _ in ()).throw(TimeoutError("of the call")))


def test_call_without_an_end_ends_at_the_deadline() -> None:
    began = time.monotonic()
    with pytest.raises(InfraError, match=r"cannot read x: no response within 0\.2 s"):
        within(0.2, "cannot read x", threading.Event().wait)
    assert time.monotonic() - began < 10


def test_errors_are_returned_by_item() -> None:
    def call(item: int) -> None:
        if item % 10 == 3:
            raise InfraError(f"bad {item}")

    errors = for_each(range(40), call, seconds=60, what="cannot copy")
    assert {item: str(error) for item, error in errors.items()} == {n: f"bad {n}" for n in (3, 13, 23, 33)}


def test_items_are_handled_at_the_same_time() -> None:
    barrier = threading.Barrier(AT_ONCE)
    assert for_each(range(AT_ONCE), lambda _: barrier.wait(30), seconds=60, what="cannot copy") == {}


def test_unfinished_items_are_errors_at_the_deadline() -> None:
    never = threading.Event()
    errors = for_each([0, 1], lambda item: never.wait() if item else None, seconds=0.3, what="cannot copy")
    assert {item: str(error) for item, error in errors.items()} == {1: "cannot copy: not finished within 0.3 s"}
