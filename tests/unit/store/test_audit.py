"""Who decided what: decisions of all tables in one list."""

import math
from typing import Any

from tests.support.stories import T0, a_run
from tests.unit.store.test_quarantines import quarantine

from tipcflow.domain.alert.audit import AuditEntry
from tipcflow.domain.alert.entry import TIPCFLOW
from tipcflow.store import Baseline, Store


def baseline(**fields: Any) -> Baseline:
    run = a_run()
    known: dict[str, Any] = {"chain": run.chain, "mode": run.mode, "step": "train", "metric": "ips", "run": run.id}
    known |= {"environment": "cpu", "value": 1.0, "who": "mia", "why": "agreed", "accepted_at": T0}
    return Baseline(**(known | fields))


def test_decisions_are_listed_newest_first(store: Store) -> None:
    run = a_run()
    store.runs.create(run)
    store.baselines.accept([baseline(), baseline(metric="batch_cost")])
    store.baselines.accept([baseline(pinned=True, who="bob", why="release", accepted_at=T0 + 10)])
    store.baselines.accept([baseline(value=math.nan, who="bob", why="new driver", accepted_at=T0 + 20)])
    store.quarantines.add(quarantine(created_at=T0 + 30), per_day=3)
    store.quarantines.release(1, at=T0 + 40, who="zoe", why="fixed")
    found = store.audit.entries(T0)
    words = [(entry.at - T0, entry.who, entry.action, entry.text) for entry in found]
    assert words == [
        (40, "zoe", "release quarantine", "parity.onednn: fixed"),
        (30, "mia", "quarantine", "parity.onednn: known kernel bug"),
        (20, "bob", "reset baseline", "1 metric: new driver"),
        (10, "bob", "pin baseline", "1 metric: release"),
        (0, "mia", "accept baseline", "2 metrics: agreed"),
    ]
    assert {(entry.about, entry.run) for entry in found} == {(run.chain, run.id)}
    assert [entry.at for entry in store.audit.entries(T0 + 35)] == [T0 + 40]


def test_approvals_of_code_of_forks_are_listed(store: Store) -> None:
    before = store.now()
    assert store.pulls.approve("o/r", 7, "a" * 40, "mia")
    assert not store.pulls.approve("o/r", 7, "a" * 40, "bob"), "the commit is already approved"
    (entry,) = store.audit.entries(before)
    assert before <= entry.at <= store.now()
    assert (entry.who, entry.action, entry.about) == ("mia", "approve code of fork", "o/r#7")
    assert (entry.run, entry.text) == ("", f"commit {'a' * 40}")
    assert store.audit.entries(entry.at + 1) == []
    store.pulls.forget(0)
    assert store.audit.entries(before) == [entry], "approvals stay after their attempts are removed"


def test_actions_of_tipcflow_are_not_listed(store: Store) -> None:
    store.runs.create(a_run())
    store.quarantines.add(quarantine(), per_day=3)
    store.quarantines.release(1, at=T0 + 40, who=TIPCFLOW, why="3 clean runs")
    assert store.audit.entries(T0) == [
        AuditEntry(
            at=T0,
            who="mia",
            action="quarantine",
            about=a_run().chain,
            run=a_run().id,
            text="parity.onednn: known kernel bug",
        )
    ]
