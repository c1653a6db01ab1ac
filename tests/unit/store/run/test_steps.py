from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from tests.support.stories import INFER, T0, TRAIN, a_plan, a_record, a_run

from tipcflow.domain import Attempt, EndReason, InfraError, LegKey, OutputFile, Status
from tipcflow.store import Store

RUN = a_run().id
SAID_OF_STEPS = {"pass", "not_run", "blocked", "cancelled", "infra_failure", "failed"}


@pytest.fixture
def begun(store: Store) -> Store:
    store.runs.create(a_run(), a_plan())
    return store


def test_attempts_are_numbered_and_kept(begun: Store) -> None:
    first = begun.attempts.open(RUN, TRAIN, ["node-a", "node-b"], T0)
    records = [
        a_record(RUN, exit_code=1, outputs=(OutputFile(path="x", exists=False),), peak_rss_bytes={"0": 1 << 33}),
        a_record(RUN, node="node-b", reason=EndReason.SIGNALED, exit_code=None, signal=9, oom=True),
    ]
    assert begun.attempts.close(RUN, TRAIN, first, Status.FAILED, "exit 1", records, T0 + 2)
    second = begun.attempts.open(RUN, TRAIN, ["node-a", "node-b"], T0 + 3)
    other = begun.attempts.open(RUN, INFER, ["node-a"], T0 + 4)
    assert (first, second, other) == (1, 2, 1)
    assert begun.attempts.of(RUN) == [
        Attempt(
            run=RUN,
            step=TRAIN,
            attempt=1,
            nodes=("node-a", "node-b"),
            status=Status.FAILED,
            reason="exit 1",
            records=tuple(records),
            started_at=T0,
            ended_at=T0 + 2,
        ),
        Attempt(run=RUN, step=TRAIN, attempt=2, nodes=("node-a", "node-b"), started_at=T0 + 3),
        Attempt(run=RUN, step=INFER, attempt=1, nodes=("node-a",), started_at=T0 + 4),
    ]


def test_a_step_has_one_open_attempt(begun: Store) -> None:
    begun.attempts.open(RUN, TRAIN, ["node-a"], T0)
    with pytest.raises(InfraError, match=f"attempt 1 of step {TRAIN} of run {RUN} is still open"):
        begun.attempts.open(RUN, TRAIN, ["node-a"], T0)


def test_of_many_that_open_one_attempt_one_succeeds(begun: Store) -> None:
    def try_it(_: int) -> int | None:
        try:
            return begun.attempts.open(RUN, TRAIN, ["node-a"], T0)
        except InfraError:
            return None

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(try_it, range(16)))
    assert sorted(answer for answer in answers if answer is not None) == [1]


def test_an_attempt_is_closed_once(begun: Store) -> None:
    number = begun.attempts.open(RUN, TRAIN, ["node-a"], T0)
    assert begun.attempts.close(RUN, TRAIN, number, Status.PASS, "", [], T0 + 1)
    assert not begun.attempts.close(RUN, TRAIN, number, Status.FAILED, "second observer", [], T0 + 2)
    assert begun.attempts.of(RUN)[0].status is Status.PASS
    with pytest.raises(KeyError, match="no attempt 7"):
        begun.attempts.close(RUN, TRAIN, 7, Status.PASS, "", [], T0)


def test_steps_that_the_plan_does_not_have_are_refused(begun: Store) -> None:
    with pytest.raises(KeyError, match="no step nowhere"):
        begun.attempts.open(RUN, "nowhere", ["node-a"], T0)
    with pytest.raises(KeyError, match="no step nowhere"):
        begun.steps.set(RUN, "nowhere", Status.PASS)
    with pytest.raises(KeyError, match="no step nowhere"):
        begun.steps.set_leg(RUN, "nowhere", "leg", 1, Status.PASS)


def test_step_statuses_survive_a_round_trip(begun: Store) -> None:
    assert begun.steps.statuses(RUN) == {}
    begun.steps.set(RUN, INFER, Status.BLOCKED, "train failed")
    begun.steps.set(RUN, TRAIN, Status.PASS)
    begun.steps.set(RUN, TRAIN, Status.FAILED, "NUL \0 and a lone surrogate \udc80")
    result = begun.steps.statuses(RUN)
    assert list(result) == [TRAIN, INFER]
    assert result == {
        TRAIN: (Status.FAILED, "NUL \ufffd and a lone surrogate \\udc80"),
        INFER: (Status.BLOCKED, "train failed"),
    }


def test_the_last_attempt_speaks_for_a_leg(begun: Store) -> None:
    record = a_record(RUN, step=INFER, leg="cpu_onednn_on", exit_code=1)
    begun.steps.set_leg(RUN, INFER, "cpu_onednn_on", 1, Status.FAILED, "exit 1", record)
    begun.steps.set_leg(RUN, INFER, "cpu_onednn_off", 1, Status.FAILED, "exit 1")
    again = record.model_copy(update={"attempt": 2, "exit_code": 0})
    begun.steps.set_leg(RUN, INFER, "cpu_onednn_on", 2, Status.INFRA_FAILURE, "node lost")
    begun.steps.set_leg(RUN, INFER, "cpu_onednn_on", 2, Status.PASS, "", again)
    assert begun.steps.leg_statuses(RUN) == {
        LegKey(INFER, "cpu_onednn_off"): (Status.FAILED, "exit 1"),
        LegKey(INFER, "cpu_onednn_on"): (Status.PASS, ""),
    }
    assert begun.steps.leg_records(RUN) == [again]


@pytest.mark.parametrize("status", list(Status))
def test_only_words_of_the_table_are_taken(begun: Store, status: Status) -> None:
    number = begun.attempts.open(RUN, TRAIN, ["node-a"], T0)
    acts = (
        lambda: begun.steps.set(RUN, TRAIN, status),
        lambda: begun.steps.set_leg(RUN, INFER, "cpu_onednn_on", 1, status),
        lambda: begun.attempts.close(RUN, TRAIN, number, status, "", [], T0),
    )
    for act in acts:
        if status.value in SAID_OF_STEPS:
            act()
        else:
            with pytest.raises(ValueError, match="not a status of"):
                act()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE runs SET status = 'green', ended_at = 1",
        "UPDATE runs SET status = 'pass'",
        "UPDATE steps SET status = 'regression'",
        "INSERT INTO attempts VALUES ('{run}', '{step}', 0, '[]', NULL, '', '[]', 0, NULL)",
        "INSERT INTO attempts VALUES ('{run}', '{step}', 1, '[]', 'pass', '', '[]', 0, NULL)",
        "INSERT INTO attempts VALUES ('{run}', 'nowhere', 1, '[]', NULL, '', '[]', 0, NULL)",
        "INSERT INTO attempts VALUES ('{run}', NULL, 1, '[]', NULL, '', '[]', 0, NULL)",
        "INSERT INTO documents VALUES ('unknown', 'x', '1', 0)",
        "INSERT INTO fences VALUES (2, 0)",
        "DELETE FROM runs",
    ],
)
def test_database_constraints_refuse_invalid_rows(begun: Store, statement: str) -> None:
    with pytest.raises(IntegrityError), begun.database.write() as connection:
        connection.execute(text(statement.format(run=RUN, step=TRAIN)))


def test_clearing_a_step_clears_its_legs(begun: Store) -> None:
    begun.steps.set(RUN, INFER, Status.PASS)
    begun.steps.set_leg(RUN, INFER, "cpu_onednn_on", 1, Status.PASS)
    begun.steps.clear(RUN, [INFER])
    assert begun.steps.statuses(RUN) == {}
    assert begun.steps.leg_statuses(RUN) == {}
    # Blocked this time: the PASS of the round before must not come back.
    begun.steps.set_leg(RUN, INFER, "cpu_onednn_on", 0, Status.BLOCKED, "train failed")
    assert begun.steps.leg_statuses(RUN) == {LegKey(INFER, "cpu_onednn_on"): (Status.BLOCKED, "train failed")}
