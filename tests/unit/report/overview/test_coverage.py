from typing import Any

from tipcflow.report.overview.coverage import ChainCoverage, Gap, make_coverage
from tipcflow.report.overview.text import csv_of


def chain(name: str, *gaps: str, **fields: Any) -> ChainCoverage:
    known: dict[str, Any] = {
        "declared": True,
        "lines": 1,
        "passing": 1,
        "legs": 3,
        "legs_ran": 2,
        "legs_passed": 1,
    }
    known |= {"not_run": {}, "newest_run": "r", "newest_at": 1_795_000_000.0}
    return ChainCoverage(**(known | {"chain": name, "suite": "s", "gaps": gaps} | fields))


def test_totals_gaps_and_reasons() -> None:
    idle = chain("s/never/a", Gap.NEVER_RUN, lines=0, passing=0, legs=0, legs_ran=0, legs_passed=0, newest_at=None)
    some = chain("s/some/a", Gap.NO_GOLDEN, Gap.LEGS, not_run={"no GPU": 1})
    more = chain("s/more/a", Gap.LEGS, not_run={"no GPU": 2, "no oneDNN": 1}, passing=0)
    coverage = make_coverage([chain("s/fine/a"), more, some, idle], 3, at=0, days=14)
    assert [each.chain for each in coverage.chains] == ["s/never/a", "s/some/a", "s/more/a", "s/fine/a"]
    assert coverage.totals == {
        "chains": 4, "declared": 4, "ran": 3, "passed": 3, "passing": 2, "legs": 9,
        "legs_ran": 6, "legs_passed": 3,
    }  # fmt: skip
    assert coverage.gaps == {Gap.NEVER_RUN: 1, Gap.NO_GOLDEN: 1, Gap.LEGS: 2}
    assert [(each.reason, each.legs, len(each.chains)) for each in coverage.reasons] == [
        ("no GPU", 3, 2), ("no oneDNN", 1, 1),
    ]  # fmt: skip


def test_coverage_is_printed_as_csv() -> None:
    coverage = make_coverage([chain("s/some/a", Gap.NO_GOLDEN, Gap.LEGS, not_run={"no GPU": 1})], 1, at=0, days=14)
    assert csv_of(coverage).splitlines() == [
        "chain,suite,declared,lines,passing,legs,legs_ran,legs_passed,newest_run,newest_at,gaps,not_run",
        "s/some/a,s,true,1,1,3,2,1,r,2026-11-18T11:06:40+00:00,no golden; legs not run,no GPU: 1",
    ]
