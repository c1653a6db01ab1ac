"""Pairs of runs of two versions."""

import pytest

from tipcflow.domain import Status
from tipcflow.report.overview.versions import KINDS, Pair, Side, kind_of_pair, versions_of

P, F, R, I = Status.PASS, Status.FAILED, Status.REGRESSION, Status.IMPROVEMENT  # noqa: E741


@pytest.mark.parametrize(
    ("base", "new", "kind"),
    [
        (P, F, "broken"), (F, R, "bad"), (F, I, "fixed"), (P, P, "passing"), (None, F, "new"),
        (P, None, "missing"),
    ],
)  # fmt: skip
def test_kind_of_a_pair_follows_the_statuses(base: Status | None, new: Status | None, kind: str) -> None:
    assert kind_of_pair(base, new) == kind
    assert kind in KINDS


def a_pair(chain: str, base: Status | None, new: Status | None) -> Pair:
    def side(status: Status | None) -> Side | None:
        return Side(run="r", status=status, started_at=0.0) if status else None

    kind = kind_of_pair(base, new)
    return Pair(kind=kind, chain=chain, mode="m", cluster="c", environment="e", base=side(base), new=side(new))


def test_the_worst_come_first_and_are_counted() -> None:
    pairs = [a_pair("a", P, P), a_pair("b", F, P), a_pair("c", P, R), a_pair("d", P, F), a_pair("e", P, None)]
    made = versions_of("old", "new", pairs)
    assert "".join(pair.chain for pair in made.pairs) == "dcbae"
    assert made.counts == {"broken": 2, "fixed": 1, "passing": 1, "missing": 1}
    assert made.sentence == "2 of 4 chains pass on new; against old: 2 newly broken, 1 fixed, 1 not run yet"
    assert versions_of("", "new", [a_pair("a", None, P)]).sentence == "1 of 1 chain passes on new"
    same = versions_of("old", "new", [a_pair("a", P, P)])
    assert same.sentence == "1 of 1 chain passes on new; against old: no difference"
