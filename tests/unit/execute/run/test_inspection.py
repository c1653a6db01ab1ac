"""Ports of a run are chosen in one order by all runs."""

from types import SimpleNamespace

from tipcflow.execute.run.inspection import _older_runs


def older(run: str, *leases: tuple[str, int]) -> list[str]:
    rows = [SimpleNamespace(run=name, fence=fence) for name, fence in leases]
    return _older_runs(SimpleNamespace(leases=SimpleNamespace(all=lambda: rows)), run)  # type: ignore[arg-type]


def test_only_runs_with_older_leases_choose_before() -> None:
    leases = [("late", 9), ("own", 5), ("own", 5), ("early", 2), ("earlier", 1)]
    assert older("own", *leases) == ["earlier", "early"]
    assert older("earlier", *leases) == []
    assert older("late", *leases) == ["earlier", "early", "own"]
