"""Calls with a deadline: libraries of stores, and mounted file systems, have waits without one."""

import queue
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TypeVar

from tipcflow.domain import InfraError
from tipcflow.domain.numbers.units import limit

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741
AT_ONCE = 8


def within(seconds: float, what: str, call: Callable[[], T]) -> T:
    """Return the result of a call, which runs in a thread of its own; the thread is left behind if it is too slow.

    Raises:
        InfraError: no result within `seconds`; the message begins with `what`.
    """
    result: Future[T] = Future()

    def work() -> None:
        """Call, and store the result or the error."""
        try:
            result.set_result(call())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=work, name="object store", daemon=True).start()
    try:
        return result.result(timeout=seconds)
    except TimeoutError:
        if result.done():
            raise  # the call's own
        raise InfraError(f"{what}: no response within {limit(seconds)}", passing=True) from None


def for_each(items: Iterable[I], call: Callable[[I], object], *, seconds: float, what: str) -> dict[I, Exception]:
    """Call for every item, some at the same time; return item -> error, of unfinished items at the deadline, too.

    Args:
        what: begins the message of an unfinished item.
    """
    left: queue.SimpleQueue[I] = queue.SimpleQueue()
    errors: dict[I, Exception] = {}
    guard, over = threading.Lock(), threading.Event()
    for item in items:
        left.put(item)
        errors[item] = InfraError(f"{what}: not finished within {limit(seconds)}", passing=True)

    def work() -> None:
        """Call for items until none is left."""
        while not over.is_set():
            try:
                item = left.get_nowait()
            except queue.Empty:
                return
            error = None
            try:
                call(item)
            except Exception as caught:
                error = caught
            with guard:
                if over.is_set():
                    return
                if error is None:
                    del errors[item]
                else:
                    errors[item] = error

    workers = [
        threading.Thread(target=work, name="object store", daemon=True) for _ in range(min(AT_ONCE, len(errors)))
    ]
    until = time.monotonic() + seconds
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(max(0.0, until - time.monotonic()))
    with guard:
        over.set()
        return dict(errors)
