"""A database server that is unavailable for a while, and one that never existed."""

import threading
import time
from collections.abc import Iterator

import pytest
from tests.support import postgres
from tests.support.faults.cli_store import Line

from tipcflow.domain import InfraError
from tipcflow.store import Store

pytestmark = pytest.mark.process


@pytest.fixture
def line() -> Iterator[tuple[Line, str]]:
    with postgres.running() as server:
        made = Line(server.socket_dir)
        yield made, server.create().replace(str(server.socket_dir), str(made.folder))
        made.close()


def test_a_database_that_comes_back_is_waited_for(line: tuple[Line, str]) -> None:
    way, url = line
    with Store.open(url) as store:
        way.cut()
        threading.Timer(1.5, way.restore).start()
        begun = time.monotonic()
        assert store.leases.all() == []
        assert time.monotonic() - begun > 1.0


def test_a_database_that_is_away_from_the_beginning_is_not(line: tuple[Line, str]) -> None:
    way, url = line
    way.cut()
    with pytest.raises(InfraError, match="cannot use the database"):
        Store.open(url)
