"""Requests for an object share its transfer, which continues after the deadline of each."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tipcflow.domain import InfraError
from tipcflow.execute.objects.transfers import Transfers, transfers


class Slow:
    """Writes half of a file, waits until it may end, and then ends with `error`, if there is one."""

    def __init__(self) -> None:
        self.began: list[Path] = []
        self.has_begun, self.may_end = threading.Semaphore(0), threading.Event()
        self.error: Exception | None = None

    def __call__(self, file: Path) -> None:
        self.began.append(file)
        file.write_bytes(b"x" * 1000)
        self.has_begun.release()
        self.may_end.wait()
        if self.error is not None:
            raise self.error


@pytest.fixture
def slow() -> Iterator[Slow]:
    made = Slow()
    yield made
    made.may_end.set()


@pytest.fixture
def wait(slow: Slow, tmp_path: Path) -> Callable[..., None]:
    under_way = Transfers(most=2)

    def wait(key: str, seconds: float) -> None:
        under_way.wait(key, tmp_path / key, slow, count=2000, seconds=seconds, what=f"cannot read {key}")

    return wait


def test_later_request_joins_a_transfer_that_continues(slow: Slow, wait: Callable[..., None]) -> None:
    with pytest.raises(InfraError):
        wait("a", 0.1)
    slow.has_begun.acquire()
    message = r"read a: not complete within 0\.1 s: 1000 B of 2\.0 KiB copied; the copy continues: try again"
    for _ in range(2):
        with pytest.raises(InfraError, match=message) as caught:
            wait("a", 0.1)
        assert caught.value.passing
    threading.Timer(0.2, slow.may_end.set).start()
    wait("a", 60)
    assert len(slow.began) == 1
    wait("a", 60)
    assert len(slow.began) == 2, "the first has ended"


def test_error_of_a_transfer_reaches_every_request(slow: Slow, wait: Callable[..., None]) -> None:
    slow.error = TimeoutError("of the store")
    with pytest.raises(InfraError):
        wait("a", 0.2)
    threading.Timer(0.2, slow.may_end.set).start()
    with pytest.raises(TimeoutError, match="of the store"):
        wait("a", 60)


def test_number_of_transfers_at_once_is_limited(slow: Slow, wait: Callable[..., None]) -> None:
    for key in "ab":
        with pytest.raises(InfraError, match=f"cannot read {key}: "):
            wait(key, 0.1)
        slow.has_begun.acquire()
    with pytest.raises(InfraError, match=r"cannot read c: 2 other transfers did not end within 0\.2 s; try again"):
        wait("c", 0.2)
    assert [file.name for file in slow.began] == ["a", "b"]
    threading.Timer(0.2, slow.may_end.set).start()
    wait("c", 60)


def test_transfer_without_a_byte_has_no_response(tmp_path: Path) -> None:
    may_end = threading.Event()
    with pytest.raises(InfraError, match=r"cannot read a: no response within 0\.2 s"):
        Transfers().wait("a", tmp_path / "a", lambda _: may_end.wait(), count=0, seconds=0.2, what="cannot read a")
    may_end.set()


def test_process_has_one_set_of_transfers() -> None:
    assert transfers() is transfers()
