"""Which nodes a waiting run moves to, with made-up times."""

from tipcflow.store.leases.moves import candidate_slots, moves
from tipcflow.store.leases.rows import LeaseRequest, Slot

NOW, RISE_S = 1_795_000_000.0, 1800.0
GROUPS = [["a", "b", "c", "d"]]


def request(run: str, *slots: Slot, age_s: float = 10, priority: int = 3) -> LeaseRequest:
    return LeaseRequest(
        run=run, slots=slots, owner="test", priority=priority, created_at=NOW - age_s, expires_at=NOW + 60
    )


def moved(mine: LeaseRequest, held: list[Slot], *others: LeaseRequest) -> dict[str, str]:
    return moves(mine, GROUPS, held, [mine, *others], NOW, RISE_S)


def test_run_moves_to_the_first_free_node() -> None:
    assert moved(request("mine", ("a", 0)), [("a", 0), ("b", 0)]) == {"a": "c"}


def test_run_stays_if_its_node_is_free_or_all_are_taken() -> None:
    assert moved(request("mine", ("a", 0)), []) == {}
    assert moved(request("mine", ("a", 0)), [(node, 0) for node in "abcd"]) == {}


def test_gang_keeps_its_free_node_and_replaces_the_other() -> None:
    mine = request("mine", ("a", 0), ("b", 0))
    assert moved(mine, [("b", 0), ("c", 0)]) == {"b": "d"}
    assert moved(mine, [("a", 0), ("b", 0)]) == {"a": "c", "b": "d"}
    assert moved(mine, [("a", 0), ("b", 0), ("d", 0)]) == {"a": "c"}


def test_all_slots_of_the_other_node_must_be_free() -> None:
    mine = request("mine", ("a", 0), ("a", 1))
    assert moved(mine, [("a", 1), ("b", 1)]) == {"a": "c"}


def test_nodes_wanted_by_an_earlier_request_stay_reserved() -> None:
    mine, held = request("mine", ("a", 0)), [("a", 0)]
    assert moved(mine, held, request("older", ("b", 0), ("d", 0), age_s=20)) == {"a": "c"}
    assert moved(mine, held, request("younger", ("b", 0), age_s=5)) == {"a": "b"}
    assert moved(mine, held, request("urgent", ("b", 0), age_s=5, priority=2)) == {"a": "c"}
    assert moved(mine, [], request("older", ("a", 0), age_s=20)) == {"a": "b"}


def test_expired_request_reserves_nothing() -> None:
    gone = request("gone", ("b", 0), age_s=20).model_copy(update={"expires_at": NOW - 1})
    assert moved(request("mine", ("a", 0)), [("a", 0)], gone) == {"a": "b"}


def test_node_is_replaced_by_its_like_only() -> None:
    mine = request("mine", ("a", 0))
    assert moves(mine, [["a"], ["b", "c"]], [("a", 0)], [mine], NOW, RISE_S) == {}


def test_candidates_are_the_groups_of_wanted_nodes() -> None:
    assert candidate_slots([("a", 0), ("a", 1)], [["a", "b"], ["x", "y"]]) == [("a", 0), ("a", 1), ("b", 0)]
