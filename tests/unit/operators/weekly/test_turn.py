import pytest

from tipcflow_operators.airflow.child_runs import ahead_of


def states(*words: str | None) -> dict[str, str | None]:
    return {f"certify_{index}": word for index, word in enumerate(words)}


@pytest.mark.parametrize("at_once", [1, 2, 16])
def test_the_first_do_not_wait(at_once: int) -> None:
    assert [ahead_of(index, {}, at_once) for index in range(at_once)] == [0] * at_once
    assert ahead_of(at_once, {}, at_once) == 1, "tasks that Airflow does not list yet are ahead"


@pytest.mark.parametrize("word", ["success", "failed", "skipped", "upstream_failed", "removed"])
def test_ended_chain_frees_a_place_for_any_status(word: str) -> None:
    assert ahead_of(3, states("deferred", None, word, "running"), 3) == 0


@pytest.mark.parametrize("word", [None, "scheduled", "queued", "running", "deferred", "up_for_retry"])
def test_an_active_run_does_not(word: str | None) -> None:
    now = states("success", "deferred", word, "running", None)
    assert [ahead_of(index, now, 1) for index in range(5)] == [0, 0, 1, 2, 3]
    assert [ahead_of(index, now, 2) for index in range(5)] == [0, 0, 0, 1, 2]
