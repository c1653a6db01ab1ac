"""Environment classes with the framework (schema 0006) and without (0007): converted both ways, with data."""

from typing import Any

import pytest
from sqlalchemy import text
from tests.support.documents import store_raw
from tests.support.stories import T0, a_run, record_run

from tipcflow.domain import NodeFacts
from tipcflow.domain.run_documents import ClusterDocument, IncomparableDocument
from tipcflow.execute.request import RequestDocument
from tipcflow.store import Baseline, Store, migrate
from tipcflow.store.engine import make_engine, writing

CPU = "cpu/some-cpu-4/2-nodes/4-ranks"
GPU = "gpu/8x-v100/1-nodes/8-ranks"


def _old(environment: str, framework: str, number: int, **changes: Any) -> Any:
    return a_run(f"run-{number}", environment=environment, framework=framework, created_at=T0 + number, **changes)


def _accepted(run: str, environment: str, at: float, value: float, *, pinned: bool = False) -> Baseline:
    return Baseline(
        chain=a_run().chain,
        mode=a_run().mode,
        step="train",
        metric="batch_cost",
        environment=environment,
        value=value,
        pinned=pinned,
        run=run,
        who="user",
        why="new data",
        accepted_at=at,
    )


def _at(url: str, revision: str) -> None:
    """Pretend that an earlier version wrote the content: revision 0007 changes values, not the form of tables."""
    migrate.downgrade(url, "0007")
    engine = make_engine(url)
    with writing(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :v"), {"v": revision})
    engine.dispose()


def _filled(url: str) -> None:
    with Store.open(url) as store:
        for number, version in enumerate(("3.3", "3.4", "3.3")):
            record_run(store, _old(f"{CPU}/paddle-{version}", f"paddle {version}.1", number))
        record_run(store, _old(f"{GPU}/paddle-3.3/driver-535", "paddle 3.3.1", 3, nodes=("g",)))
        store.nodes.save("run-3", NodeFacts(node="g", cuda="12.6.1"))
        store.nodes.save("run-3", NodeFacts(node="other", cuda="11.8"))
        image = "hub.example/paddle:3.3.1-gpu"
        body = {"nodes": [{"name": "g", "container": {"image": image}}, {"name": "other"}]}
        store_raw(store, "run-3", ClusterDocument, body)
        store_raw(store, "run-2", RequestDocument, {"diagnose": True})
        store_raw(store, "run-1", RequestDocument, {"diagnose": False})
        record_run(store, _old("", "", 4))
        record_run(store, _old("gpu/8x-v100/1-nodes", "paddle 3.3.1", 5))
        store.baselines.accept_one(_accepted("run-0", f"{CPU}/paddle-3.3", T0 + 1, 0.10))
        store.baselines.accept_one(_accepted("run-1", f"{CPU}/paddle-3.4", T0 + 2, 0.20, pinned=True))
        store.baselines.accept_one(_accepted("run-2", f"{CPU}/paddle-3.3", T0 + 3, 0.30))
        store.baselines.accept_one(_accepted("run-3", f"{GPU}/paddle-3.3/driver-535", T0 + 4, 0.40))


def _environments(url: str) -> list[str]:
    with Store.open(url) as store:
        return [store.runs.get(f"run-{number}").environment for number in range(6)]


def _before() -> str:
    scripts = migrate.revisions()
    return scripts[scripts.index("0007") - 1]


@pytest.mark.slow
def test_histories_of_two_framework_versions_become_one(empty_url: str) -> None:
    migrate.upgrade(empty_url)
    _filled(empty_url)
    _at(empty_url, _before())
    migrate.upgrade(empty_url)
    gpu = f"{GPU}/driver-535/cuda-12.6/image-hub.example-paddle"
    assert _environments(empty_url) == [CPU, CPU, CPU, gpu, "", "gpu/8x-v100/1-nodes"]
    with Store.open(empty_url) as store:
        decided = store.baselines.decisions(a_run().chain, a_run().mode, CPU)
        assert [(one.ordinal, one.value, one.run, one.pinned) for one in decided] == [
            (0, 0.10, "run-0", False),
            (1, 0.20, "run-1", True),
            (2, 0.30, "run-2", False),
        ]
        assert [one.value for one in store.baselines.active(a_run().chain, a_run().mode, CPU)] == [0.30]
        assert [one.value for one in store.baselines.active(a_run().chain, a_run().mode, gpu)] == [0.40]
        assert store.documents.get("run-2", IncomparableDocument) == IncomparableDocument(why="--diagnose")
        assert store.documents.get("run-1", IncomparableDocument) is None


def test_the_way_back_restores_the_framework(empty_url: str) -> None:
    migrate.upgrade(empty_url)
    _filled(empty_url)
    _at(empty_url, _before())
    before = _environments_of_tables(empty_url)
    migrate.upgrade(empty_url)
    assert _environments_of_tables(empty_url) != before
    migrate.downgrade(empty_url, _before())
    assert _environments_of_tables(empty_url) == before


def _environments_of_tables(url: str) -> list[tuple[Any, ...]]:
    engine = make_engine(url)
    try:
        with engine.connect() as connection:
            found = connection.execute(text("SELECT id, environment FROM runs ORDER BY id")).all()
            found += connection.execute(
                text(
                    "SELECT environment, ordinal, value, pinned, run FROM baselines ORDER BY environment, ordinal"
                )
            ).all()
            return [tuple(row) for row in found]
    finally:
        engine.dispose()
