import pytest

from operators.weekly_runs import ahead_of

RUNS = ["run-2", "run-2-again"]


def states(*words: str | None) -> dict[str, str | None]:
    return {f"certify_{index}": word for index, word in enumerate(words)}


def test_the_first_does_not_wait() -> None:
    assert ahead_of(0, states(None), [], []) == 0


@pytest.mark.parametrize("word", ["success", "failed", "skipped", "upstream_failed", "removed"])
def test_one_whose_predecessor_is_done_does_not_wait_whatever_became_of_it(word: str) -> None:
    assert ahead_of(3, states("deferred", None, word, "running"), RUNS, []) == 0


@pytest.mark.parametrize("word", [None, "scheduled", "queued", "running", "deferred", "up_for_retry"])
def test_it_waits_until_its_predecessor_has_slots(word: str | None) -> None:
    now = states("success", "deferred", word, "running")
    assert ahead_of(3, now, RUNS, []) == 2
    assert ahead_of(3, now, RUNS, ["run-1"]) == 1
    assert ahead_of(3, now, RUNS, ["run-1", "of a pull request", "another"]) == 1
    assert ahead_of(3, now, RUNS, ["run-1", "run-2-again"]) == 0


def test_tasks_that_airflow_does_not_list_yet_are_ahead() -> None:
    assert ahead_of(2, {}, RUNS, []) == 2
