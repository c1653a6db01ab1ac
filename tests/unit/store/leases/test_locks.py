"""Locks by name: one process at a time, on any machine, and none longer than its process."""

import subprocess
import sys
import threading
import time

import pytest

from tipcflow.domain import InfraError
from tipcflow.store import Store

HOLD = """
import sys, time
from tipcflow.store import Store
with Store.open(sys.argv[1]) as store, store.locks.held("close run step", seconds=5):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def server(store: Store) -> Store:
    if store.database.engine.dialect.name != "postgresql":
        pytest.skip("a SQLite file is used by one machine, where lock files suffice")
    return store


def test_a_lock_can_be_held_again_after_its_release(store: Store) -> None:
    for _ in range(2):
        with store.locks.held("placing", seconds=5):
            store.runs.unfinished()


def test_a_lock_is_released_after_an_error(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.locks.held("placing", seconds=5):
        raise ZeroDivisionError
    with store.locks.held("placing", seconds=0):
        pass


def test_another_process_waits_and_gets_the_reason(server: Store, database_url: str) -> None:
    command = [sys.executable, "-c", HOLD, database_url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        try:
            assert holder.stdout.readline() == "held\n"
            with server.locks.held("close run other", seconds=0):
                pass  # another name, another lock
            message = "the database's lock 'close run step' was held by another process for 0.3 s"
            with pytest.raises(InfraError, match=message), server.locks.held("close run step", seconds=0.3):
                pass
        finally:
            holder.kill()
    # A killed process leaves no lock behind.
    with server.locks.held("close run step", seconds=30):
        pass


def test_threads_take_turns(server: Store) -> None:
    inside: list[int] = []
    most: list[int] = []

    def work(number: int) -> None:
        with server.locks.held("placing", seconds=60):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.02)
            inside.remove(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]


def test_a_broken_connection_does_not_hide_the_error(server: Store) -> None:
    with pytest.raises(ZeroDivisionError), server.locks.held("placing", seconds=5):
        _end_the_holder(server)


def _end_the_holder(server: Store) -> None:
    others = (
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
    )
    with server.database.read() as connection:
        connection.exec_driver_sql(others)
    raise ZeroDivisionError
