"""Table line_states equals what the runs give, whatever was written in whatever order."""

import random
import threading
from typing import Any

import pytest
from sqlalchemy import select
from tests.support.stories import T0, a_run

from tipcflow.domain import Status
from tipcflow.domain.run_documents import MergeBaseDocument
from tipcflow.domain.triggers import SIDE_RUNS
from tipcflow.store import Store
from tipcflow.store.recorded import RecordedRun
from tipcflow.store.run.line_states import GREEN
from tipcflow.store.schema import documents, line_states, runs

COPIED = ("suite", "cluster", "status", "framework", "created_at")
Rows = dict[tuple[str, str, str], tuple[str, int]]


def stored(store: Store) -> Rows:
    with store.database.read() as connection:
        rows = connection.execute(select(line_states)).mappings().all()
        for row in rows:
            run = connection.execute(select(runs).where(runs.c.id == row["run"])).mappings().one()
            assert {name: run[name] for name in COPIED} == {name: row[name] for name in COPIED}
    return {(row["chain"], row["mode"], row["environment"]): (row["run"], row["accepted"]) for row in rows}


def expected(store: Store) -> Rows:
    """The states by a search in all runs."""
    with store.database.read() as connection:
        changes = set(
            connection.execute(select(documents.c.run).where(documents.c.name == MergeBaseDocument.NAME)).scalars()
        )
        rows = list(connection.execute(select(runs)).mappings())
    found: Rows = {}
    for row in sorted(rows, key=lambda row: (row["created_at"], row["id"])):
        is_state = row["status"] not in (None, Status.CANCELLED) and row["trigger"] not in SIDE_RUNS
        if is_state and row["id"] not in changes:
            key = (row["chain"], row["mode"], row["environment"])
            found[key] = (row["id"], found.get(key, ("", 0))[1] + (row["status"] in GREEN))
    return found


def some_run(number: int, chance: random.Random, status: Status | None) -> Any:
    ended = {"status": status, "ended_at": T0 + number + 1} if status else {}
    return a_run(
        f"r{number:03}",
        chain=chance.choice(["s/a/x", "s/b/x"]),
        environment=chance.choice(["", "cpu", "gpu"]),
        trigger=chance.choice(["cli", "weekly", "confirm"]),
        created_at=T0 + chance.randrange(40),
        **ended,
    )


STATUSES = (Status.PASS, Status.FAILED, Status.IMPROVEMENT, Status.REGRESSION, Status.CANCELLED)


@pytest.mark.parametrize("seed", range(4))
def test_random_writes_keep_the_states(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(60):
        known = f"r{chance.randrange(max(number, 1)):03}"
        write = chance.choice(["create", "finish", "reopen", "environment", "base", "no base", "recorded"])
        if write in ("create", "recorded") or number < 5:
            status = chance.choice([None, *STATUSES])
            run = some_run(number, chance, status)
            if write == "recorded":
                store.recorded.add([RecordedRun(run)])
            else:
                store.runs.create(run)
        elif store.runs.get_or_none(known) is None:
            continue
        elif write == "finish":
            store.runs.finish(known, chance.choice(STATUSES), "", T0 + 100)
        elif write == "reopen":
            store.runs.reopen(known)
        elif write == "environment":
            store.runs.update(known, environment=chance.choice(["cpu", "gpu"]))
        elif write == "base":
            store.documents.put(known, MergeBaseDocument(commit="c"))
        else:
            store.documents.remove(known, MergeBaseDocument)
        assert stored(store) == expected(store), (number, write)
    assert stored(store)


def test_concurrent_ends_of_a_line_lose_no_run(store: Store, database_url: str) -> None:
    names = [f"r{number:02}" for number in range(12)]
    for number, name in enumerate(names):
        store.runs.create(a_run(name, environment="cpu", created_at=T0 + number))

    def finish(name: str) -> None:
        with Store.open(database_url) as own:
            own.runs.finish(name, Status.PASS, "", T0 + 100)

    threads = [threading.Thread(target=finish, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    (state,) = stored(store).values()
    assert state == ("r11", 12)


def test_the_migration_fills_the_states(store: Store, database_url: str) -> None:
    from tipcflow.store import migrate

    chance = random.Random(7)
    for number in range(40):
        store.runs.create(some_run(number, chance, chance.choice([None, *STATUSES])))
        if number % 7 == 0:
            store.documents.put(f"r{number:03}", MergeBaseDocument(commit="c"))
    before = stored(store)
    migrate.downgrade(database_url, "0013")
    migrate.upgrade(database_url)
    assert stored(store) == before == expected(store)
