"""Sentences and groups of changes."""

import pytest

from tipcflow.domain import Status
from tipcflow.report.overview.changes import Change, make_changes


def a_change(**fields: object) -> Change:
    known = {"chain": "s/a/f", "suite": "s", "mode": "m", "cluster": "c", "environment": "e", "step": "train"}
    known |= {"leg": "", "metric": "ips", "reason": "", "first": "r2", "last_good": "r1", "newest": "r2"}
    numbers = {"ratio": 0.5, "first_at": 2.0, "last_good_at": 1.0, "runs": 1, "status": Status.REGRESSION}
    states = {"direction": "worse", "state": "open", "changed": ("framework 1 -> 2",)}
    return Change.model_validate(known | numbers | states | fields)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ([], "no metric changed in the last 1 day"),
        ([{}], "1 chain became worse with 1 change of framework or suite (1 still worse) in the last 1 day"),
        (
            [{}, {"metric": "loss"}, {"chain": "s/b/f", "state": "over", "changed": ()}],
            "2 chains became worse with 2 changes of framework or suite (1 still worse) in the last 1 day",
        ),
        ([{"direction": "better"}], "1 chain became better in the last 1 day"),
        (
            [{}, {"direction": "better", "chain": "s/b/f"}],
            "1 chain became worse with 1 change of framework or suite (1 still worse), 1 chain became better"
            " in the last 1 day",
        ),
    ],
)
def test_changes_are_summarized_in_a_sentence(changes: list[dict[str, object]], sentence: str) -> None:
    assert make_changes([a_change(**fields) for fields in changes], at=0, days=1).sentence == sentence


def test_groups_and_changes_are_sorted_worst_first() -> None:
    changes = make_changes(
        [
            a_change(chain="s/over/f", state="over"),
            a_change(chain="s/big/f", ratio=0.2),
            a_change(chain="s/better/f", direction="better"),
            a_change(chain="s/small/f", ratio=0.9),
            a_change(chain="s/same/f", changed=()),
            a_change(chain="s/first/f", changed=(), last_good="", state="over"),
        ],
        at=0,
        days=1,
    )
    assert [(group.title, group.worse, group.better, group.still) for group in changes.groups] == [
        ("framework 1 -> 2", 3, 1, 2),
        ("framework and suite are the same", 1, 0, 1),
        ("no earlier run to compare with", 1, 0, 0),
    ]
    names = [row.chain.split("/")[1] for row in changes.rows]
    assert names == ["big", "small", "over", "better", "same", "first"]
    assert [row.percent for row in changes.groups[1].changes] == [-50]
    assert a_change(ratio=None).percent is None
