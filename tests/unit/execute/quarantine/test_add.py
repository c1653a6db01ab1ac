"""A quarantine from a run's failure: scope, failure rate, and everything that is refused."""

from typing import Any

import pytest
from tests.support.stories import T0, a_run, open_store

from tipcflow.config.policy import QuarantineRule
from tipcflow.domain import CheckResult, ConfigError, Status
from tipcflow.domain.quarantine.entry import Quarantine
from tipcflow.execute.quarantine.add import Request, find_failure, quarantine_failure
from tipcflow.store import Store

CHAIN, DAY = a_run().chain, 86_400.0
BEGIN = T0 - 365 * DAY
RULE = QuarantineRule(per_day=3, max_days=30)


def parity(status: Status = Status.FAILED, leg: str = "cpu_bs1", size: float = 0.25, **fields: Any) -> CheckResult:
    known: dict[str, Any] = {"values": {"max_abs": size, "code": "other_class"}, "step": "v/infer_cpu", "leg": leg}
    return CheckResult(
        check="parity.onednn", status=status, reason=f"class {size} instead of 5", **(known | fields)
    )


def put(store: Store, number: int, *results: CheckResult, **fields: Any) -> str:
    known = {"environment": "cpu", "suite_commit": f"c{number}", "created_at": BEGIN + number * DAY}
    ended = {"status": Status.PASS, "ended_at": BEGIN + number * DAY + 60}
    run = a_run(f"run-{number}", **(known | ended | fields))
    store.runs.create(run)
    store.checks.replace(run.id, results)
    return run.id


@pytest.fixture
def store(tmp_path: Any) -> Any:
    with open_store(tmp_path / "tipcflow.db") as opened:
        yield opened


@pytest.fixture
def runs(store: Store) -> Store:
    """Nine runs; the third and the last fail."""
    for number in range(9):
        put(store, number, parity(Status.FAILED if number in (2, 8) else Status.PASS, size=0.1 + number / 100))
    return store


def add(store: Store, run: str = "", **fields: Any) -> Quarantine:
    known: dict[str, Any] = {"check": "parity.onednn", "owner": "kernels", "who": "mia", "why": "known bug"}
    request = Request(**(known | fields))
    return quarantine_failure(store, find_failure(store, CHAIN, request.check, run), request, RULE)


def test_the_newest_failure_is_stored_with_its_rate(runs: Store) -> None:
    before = runs.now()
    made = add(runs)
    assert (made.number, made.run, made.evidence) == (1, "run-8", ("run-8", "run-2"))
    assert (made.check, made.step, made.leg, made.environment) == (
        "parity.onednn",
        "v/infer_cpu",
        "cpu_bs1",
        "cpu",
    )
    assert (made.failed, made.judged, made.clean_runs) == (2, 9, 14)
    assert made.largest == pytest.approx(0.18)
    assert made.expires_at - made.created_at == 15 * DAY
    assert made.created_at >= before
    assert runs.quarantines.all() == [made]


def test_a_named_run_of_a_change_counts(runs: Store) -> None:
    from tipcflow.domain.run_documents import MergeBaseDocument

    runs.documents.put(put(runs, 9, parity(size=0.2)), MergeBaseDocument(commit="c8"))
    made = add(runs, "run-9")
    assert (made.run, made.failed, made.judged) == ("run-9", 3, 10)


def test_quarantine_requires_a_unique_failure(store: Store) -> None:
    put(store, 0, parity(), parity(leg="cpu_bs4"))
    with pytest.raises(ConfigError, match=r"run run-0 has 2 different failures of parity.onednn.*--step, --leg"):
        add(store)
    assert add(store, leg="cpu_bs4").leg == "cpu_bs4"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"check": "parity.nothing"}, "no run of the chain has a result of this check.*one of .*parity.onednn"),
        ({"check": "loss.falling"}, "no failure of loss.falling in the last 1 runs"),
        ({"check": "ran.steps"}, "ran.steps cannot be quarantined: the check proves that the declared work"),
        ({"check": "loss.finite"}, "loss.finite cannot be quarantined: the check proves"),
        ({"check": "accuracy.final"}, "accuracy.final cannot be quarantined: the run did not measure"),
        ({"check": "speed.ips"}, "speed.ips cannot be quarantined: the result does not affect"),
        ({"leg": "gpu"}, "CHECK: run run-0 has no failure of parity.onednn; found 'no result of that step"),
        ({"expires_at": 1.0}, r"--until: the end is in the past; found '1970-01-01 00:00 UTC'"),
        (
            {"expires_at": 9e9},
            r"--until: the end is too late; found '2255-03-14 .*'; expected at most 30 days by the policy",
        ),
    ],
)
def test_failures_that_cannot_be_quarantined_are_refused(store: Store, fields: dict[str, Any], text: str) -> None:
    red = Status.FAILED
    put(
        store,
        0,
        parity(),
        CheckResult(check="ran.steps", status=red, reason="nothing ran"),
        CheckResult(check="loss.finite", status=red, reason="loss is nan"),
        CheckResult(check="accuracy.final", status=red, reason="logged no top1", values={"target": 0.7}),
        CheckResult(check="speed.ips", status=Status.REGRESSION, reason="slow", gating=False, values={"value": 1}),
        CheckResult(check="loss.falling", status=Status.PASS, reason="falls"),
    )
    with pytest.raises(ConfigError, match=text):
        add(store, **fields)
    assert store.quarantines.all() == []


def test_a_run_that_cannot_be_the_evidence(runs: Store) -> None:
    put(runs, 20, parity(), chain="sample/other/f")
    put(runs, 21, parity(), status=None, ended_at=None)
    with pytest.raises(ConfigError, match="--run: the run is of another chain; found 'sample/other/f'"):
        add(runs, "run-20")
    with pytest.raises(ConfigError, match="run run-21 is running"):
        add(runs, "run-21")
    with pytest.raises(ConfigError, match=r"run run-7 has no failure of parity.onednn; found 'pass'"):
        add(runs, "run-7")


def test_the_policy_limits_quarantines_a_day(store: Store) -> None:
    put(store, 0, *(parity(leg=f"leg{number}") for number in range(4)))
    for number in range(3):
        add(store, leg=f"leg{number}")
    with pytest.raises(ConfigError, match=r"this failure of parity.onednn .* is in quarantine"):
        add(store, leg="leg0")
    with pytest.raises(ConfigError, match="too many new quarantines"):
        add(store, leg="leg3")
