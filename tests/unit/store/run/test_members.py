"""Several processes run one attempt of a step together."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy.exc import IntegrityError
from tests.support.stories import T0, TRAIN, a_plan, a_record, a_run

from tipcflow.domain import MemberState, Status
from tipcflow.domain.keys import WaitKey
from tipcflow.domain.run_documents import WaitsDocument
from tipcflow.store import Store

RUN = a_run().id
NODES = ["node-a", "node-b"]


@pytest.fixture
def begun(store: Store) -> Store:
    store.runs.create(a_run(), a_plan())
    return store


def test_concurrent_joins_share_one_open_attempt(begun: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        joined = list(pool.map(lambda _: begun.members.join(RUN, TRAIN, NODES, T0), range(8)))
    assert {one.attempt for one in joined} == {1}
    assert sum(one.opened for one in joined) == 1


def test_after_an_attempt_was_closed_comes_the_next(begun: Store) -> None:
    assert begun.attempts.open_number(RUN, TRAIN) is None
    first = begun.members.join(RUN, TRAIN, NODES, T0)
    assert begun.attempts.open_number(RUN, TRAIN) == first.attempt
    begun.attempts.close(RUN, TRAIN, first.attempt, Status.FAILED, "x", [], T0 + 1)
    assert begun.attempts.open_number(RUN, TRAIN) is None
    assert begun.members.join(RUN, TRAIN, NODES, T0).attempt == first.attempt + 1


def test_member_states_are_visible_to_all_processes(begun: Store) -> None:
    attempt = begun.members.join(RUN, TRAIN, NODES, T0).attempt
    here = MemberState(node="node-a", released=True, log_bytes={"": 12})
    begun.members.put(RUN, TRAIN, attempt, here)
    assert begun.members.of(RUN, TRAIN, attempt) == {"node-a": here}
    assert begun.members.join(RUN, TRAIN, NODES, T0).members == {"node-a": here}


def test_the_end_of_a_member_is_reported_once(begun: Store) -> None:
    attempt = begun.members.join(RUN, TRAIN, NODES, T0).attempt
    ended = MemberState(node="node-a", record=a_record(RUN, exit_code=1), known_at=5.0, artefacts={"a": 3})
    assert begun.members.put(RUN, TRAIN, attempt, ended) == ended
    late = MemberState(node="node-a", lost="no answer")
    assert begun.members.put(RUN, TRAIN, attempt, late) == ended
    assert begun.members.of(RUN, TRAIN, attempt)["node-a"] == ended


def test_a_member_needs_its_attempt(begun: Store) -> None:
    with pytest.raises(IntegrityError):
        begun.members.put(RUN, TRAIN, 7, MemberState(node="node-a"))
    with pytest.raises(KeyError):
        begun.members.join(RUN, "no/such", NODES, T0)


def test_documents_of_several_writers_are_merged(begun: Store) -> None:
    begun.documents.merge(RUN, WaitsDocument, {WaitKey("a", 0): 1})
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: begun.documents.merge(RUN, WaitsDocument, {WaitKey("n", n): n}), range(8)))
    assert begun.documents.get(RUN, WaitsDocument) == WaitsDocument(
        {WaitKey("a", 0): 1, **{WaitKey("n", n): n for n in range(8)}}
    )


def test_a_run_that_is_opened_again_has_no_status(begun: Store) -> None:
    begun.runs.finish(RUN, Status.FAILED, "x", T0 + 9)
    begun.runs.reopen(RUN)
    run = begun.runs.get(RUN)
    assert (run.status, run.reason, run.ended_at) == (None, "", None)


def _ended(store: Store, node: str, *, generation: int, cleared: int) -> int:
    """An attempt that the task of `node` ran alone, for both nodes, and closed."""
    attempt = store.members.join(RUN, TRAIN, NODES, T0, node=node, generation=generation, cleared=cleared).attempt
    for one in NODES:
        own = generation if one == node else 0
        state = MemberState(node=one, record=a_record(RUN, node=one), generation=own, cleared=cleared)
        store.members.put(RUN, TRAIN, attempt, state)
    store.attempts.close(RUN, TRAIN, attempt, Status.PASS, "", [], T0 + 1)
    return attempt


def test_mapped_tasks_of_one_round_share_one_attempt(begun: Store) -> None:
    """After a clear Airflow gives each mapped task `max_tries` = its own tries + retries: they differ."""
    assert _ended(begun, "node-a", generation=3, cleared=0) == 1
    assert _ended(begun, "node-a", generation=4, cleared=1) == 2
    who = {"node": "node-b", "generation": 5, "cleared": 1}
    assert begun.members.is_under_way(RUN, TRAIN, **who)
    late = begun.members.join(RUN, TRAIN, NODES, T0 + 2, **who)
    assert (late.attempt, late.closed) == (2, (Status.PASS, ""))


def test_clear_of_other_tasks_does_not_repeat_a_finished_task(begun: Store) -> None:
    assert _ended(begun, "node-a", generation=3, cleared=0) == 1
    assert begun.members.join(RUN, TRAIN, NODES, node="node-b", generation=4, cleared=0).closed
    for node, own in (("node-a", 3), ("node-b", 4)):
        assert begun.members.is_under_way(RUN, TRAIN, node=node, generation=own, cleared=7)
        assert begun.members.join(RUN, TRAIN, NODES, node=node, generation=own, cleared=7).attempt == 1


def test_cleared_task_starts_over_without_a_cleared_dag_run(begun: Store) -> None:
    assert _ended(begun, "node-a", generation=3, cleared=0) == 1
    assert begun.members.join(RUN, TRAIN, NODES, node="node-a", generation=6, cleared=0).attempt == 2


def test_a_task_of_the_next_round_starts_over(begun: Store) -> None:
    assert _ended(begun, "node-a", generation=3, cleared=0) == 1
    assert begun.members.join(RUN, TRAIN, NODES, node="node-b", generation=4, cleared=1).attempt == 2
