"""A run moves to other nodes of its cluster: what is stored then."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.certify import Site
from tests.support.tasks import Tasks

from tipcflow.domain import Status, StepKind
from tipcflow.domain.run_documents import ClusterDocument
from tipcflow.execute.resolve import moves
from tipcflow.execute.resolve.moved import MovedDocument
from tipcflow.execute.resolve.moves import groups_of, may_move, move_run
from tipcflow.execute.resolve.resolve import resolved_run

ADDRESS = {name: f"192.0.2.{number}" for number, name in enumerate("abcd", 1)}


class FourNodes:
    """Nodes that no test contacts."""

    def write_cluster_file(self, path: Path) -> Path:
        common = {"python": "/p", "workspace": "/w", "slots": 2}
        nodes = [{"name": name, "address": address, **common} for name, address in ADDRESS.items()]
        path.write_text(yaml.safe_dump({"name": path.stem, "nodes": nodes}))
        return path


@pytest.fixture
def tasks(tmp_path: Path) -> Iterator[Tasks]:
    made = Tasks(Site(tmp_path, FourNodes()))
    made.resolve()
    with made.store:
        yield made


def slots(*nodes: str) -> list[tuple[str, int]]:
    return [(ADDRESS[node], slot) for node in nodes for slot in range(2)]


def hold(tasks: Tasks, *nodes: str) -> None:
    holder = Tasks(tasks.site)
    holder.resolve()
    assert tasks.store.leases.acquire(holder.run, slots(*nodes), owner="test", ttl_s=600)


def test_run_moves_to_free_nodes_with_its_plan_and_cluster(tasks: Tasks) -> None:
    hold(tasks, "a", "c")
    context = tasks.context().choose_nodes()
    assert context.plan.nodes == ("d", "b")
    assert {step.nodes for step in context.plan.steps if step.kind is StepKind.TRAIN} == {("d", "b")}
    assert sorted(context.slots) == sorted(slots("b", "d"))
    assert tasks.store.runs.get(tasks.run).nodes == ("d", "b")
    assert [event.text for event in tasks.events] == ["a, b: in use or reserved; the run uses d, b instead"]
    # Later tasks make the same plan, and know which node theirs has become.
    assert resolved_run(tasks.store, tasks.run, home=tasks.home).plan(tasks.run).nodes == ("d", "b")
    document = tasks.store.documents.get(tasks.run, MovedDocument)
    assert document is not None
    assert [document.node(name, context.plan.nodes) for name in "abx"] == ["d", "b", "x"]


def test_run_that_moves_again_keeps_its_first_plan(tasks: Tasks) -> None:
    resolved = resolved_run(tasks.store, tasks.run, home=tasks.home)
    move_run(tasks.store, tasks.run, resolved, {ADDRESS["a"]: ADDRESS["c"]})
    resolved = resolved_run(tasks.store, tasks.run, home=tasks.home)
    plan = move_run(tasks.store, tasks.run, resolved, {ADDRESS["c"]: ADDRESS["a"], ADDRESS["b"]: ADDRESS["d"]})
    assert plan.nodes == ("a", "d")
    assert tasks.store.documents.get(tasks.run, MovedDocument) == MovedDocument(planned=("a", "b"))


def test_run_whose_nodes_are_free_stays(tasks: Tasks) -> None:
    context = tasks.context()
    assert context.choose_nodes() is context
    assert tasks.store.documents.get(tasks.run, MovedDocument) is None


def test_resolved_run_forgets_its_moves(tasks: Tasks) -> None:
    tasks.store.documents.put(tasks.run, MovedDocument(planned=("c", "d")))
    tasks.resolve()
    assert tasks.store.documents.get(tasks.run, MovedDocument) is None


def test_run_on_the_nodes_of_another_or_with_attempts_stays(tasks: Tasks) -> None:
    assert may_move(tasks.store, tasks.run, tasks.request())
    assert not may_move(tasks.store, tasks.run, tasks.request(nodes_of="earlier"))
    assert not may_move(tasks.store, tasks.run, tasks.request(confirms="earlier"))
    hold(tasks, "a")
    step = next(step for step in tasks.plan.steps if not step.not_run)
    number = tasks.store.attempts.open(tasks.run, step.id, step.nodes, 1.0)
    tasks.store.attempts.close(tasks.run, step.id, number, Status.PASS, "", {}, 2.0)
    context = tasks.context()
    assert context.choose_nodes() is context


def test_groups_leave_out_drained_nodes_unless_planned(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    document = tasks.store.documents.get(tasks.run, ClusterDocument)
    assert document is not None
    monkeypatch.setattr(moves, "drained_nodes", lambda *_: {"a": "slow", "c": "slow"})
    assert groups_of(tasks.store, document.root, tasks.plan) == [[ADDRESS[name] for name in ("a", "b", "d")]]
