"""Whether work waits, and the report of an attempt as stored messages."""

from tests.support.stories import a_run, record_run

from tipcflow.config.repository import Repository
from tipcflow.domain import CheckResult, Status
from tipcflow.github.flow import report, work_waits
from tipcflow.github.flow.observe import (
    Certified,
    as_json,
    check_subject,
    digest,
    facts_of,
    from_json,
    seen_chains,
)
from tipcflow.github.flow.waiting import acts, changed, due
from tipcflow.github.report import Action, Annotation, CheckRun, Conclusion
from tipcflow.store import Store
from tipcflow.store.github.attempts import HELD, NEW, PullAttempt, StartedChain

SHA = "a" * 40


def attempt(repository: Repository, state: str = NEW, **fields: object) -> PullAttempt:
    reported = {"repository": repository.name, "number": 7, "head_sha": SHA, "attempt": 1, "request": "head"}
    return PullAttempt.model_validate({**reported, "state": state, **fields})


def test_nothing_waits_in_an_empty_database(store: Store) -> None:
    assert not work_waits(store)


def test_new_attempt_is_unfinished_work_until_started(store: Store, repository: Repository) -> None:
    assert store.pulls.add(attempt(repository))
    assert work_waits(store)


def test_failed_start_waits_for_its_time(repository: Repository) -> None:
    new = attempt(repository, body={"retry_at": 100.0})
    assert (due(new, 99.0), due(new, 100.0)) == (False, True)
    assert (acts(new, 99.0), acts(new, 100.0)) == (False, True)
    assert acts(attempt(repository, body={"retry_at": 100.0}, cancel="newer push"), 99.0)


def test_cancelled_attempt_is_stopped_once(repository: Repository) -> None:
    started = attempt(repository, "started", cancel="newer push")
    assert acts(started, 0.0)
    assert not acts(attempt(repository, "started", cancel="newer push", body={"stopped": True}), 0.0)
    assert not acts(attempt(repository, "started"), 0.0)


def test_report_is_out_of_date_if_a_run_changes(store: Store, repository: Repository) -> None:
    run = record_run(store, a_run("r1", status=None))
    chain = StartedChain(chain=run.chain, run=run.id)
    mine = attempt(repository, "started", chains=(chain,))
    before = digest(mine, seen_chains(store, mine))
    assert not changed(store, mine.model_copy(update={"observed": before}))
    store.runs.finish(run.id, Status.FAILED, "loss is nan", run.created_at + 9)
    assert changed(store, mine.model_copy(update={"observed": before}))


def test_report_of_a_queued_attempt_is_a_check_without_a_conclusion(store: Store, repository: Repository) -> None:
    store.pulls.add(attempt(repository))
    (mine,) = store.pulls.living()
    assert not report(store, mine, repository)
    message = store.messages.get(repository.name, "check", check_subject(mine))
    assert message is not None
    check = from_json(message.body)
    assert (check.name, check.head_sha, check.status, check.conclusion) == (
        repository.check, SHA, "queued", None,
    )  # fmt: skip


def test_a_finding_has_baseline_and_noise_with_their_unit(store: Store, repository: Repository) -> None:
    run = record_run(store, a_run("r1"), status=Status.REGRESSION)
    values = {"value": 0.061, "unit": "s", "baseline": 0.05, "sigma": 0.0005}
    slower = CheckResult(check="speed.batch_cost", status=Status.REGRESSION, reason="slower", values=values)
    store.checks.replace(run.id, [slower])
    mine = attempt(repository, "started", chains=(StartedChain(chain=run.chain, run=run.id),))
    facts = facts_of(store, mine, repository, Certified(chains=seen_chains(store, mine)))
    (finding,) = facts.chains[0].findings
    assert (finding.before, finding.now, finding.noise) == ("0.05 s", "0.061 s", "0.0005 s")


def test_report_of_a_held_attempt_is_final(store: Store, repository: Repository) -> None:
    store.pulls.add(attempt(repository, HELD, body={"reason": "waiting for approval"}))
    (mine,) = store.pulls.of(repository.name, 7)
    assert report(store, mine, repository)
    message = store.messages.get(repository.name, "check", check_subject(mine))
    assert message is not None
    check = from_json(message.body)
    assert check.status == "completed"
    assert check.conclusion is not Conclusion.SUCCESS


def test_stored_check_run_survives_a_round_trip() -> None:
    check = CheckRun(
        name="tipc",
        head_sha=SHA,
        external_id="7",
        status="completed",
        conclusion=Conclusion.FAILURE,
        title="1 failed",
        summary="| a |",
        annotations=(Annotation("p.txt", 3, "failure", "loss", "nan"),),
        actions=(Action("Run again", "starts the chains", "rerun"),),
        details_url="",
    )
    assert from_json(as_json(check)) == check
    assert as_json(from_json(as_json(check))) == as_json(check)
