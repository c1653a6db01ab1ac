"""Results of a commit count per chain and mode: a run in one mode replaces no result of another mode."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.support.stories import a_run, record_run

from tipcflow.config.repository import WHOLE, Repository
from tipcflow.domain import Status
from tipcflow.github.flow.observe import certified, facts_of
from tipcflow.github.report import Conclusion, PullFacts, State, conclusion
from tipcflow.store import Store
from tipcflow.store.github.attempts import DONE, RUNNING, SELECTION, UNCONCERNED, PullAttempt, StartedChain

SHA = "a" * 40
A, B = "toy/A/x", "toy/B/x"
LITE = "lite_train_lite_infer"
BAD, GOOD = Status.REGRESSION, Status.PASS


@dataclass
class Commit:
    """Attempts of one commit."""

    store: Store
    repository: Repository
    attempts: list[PullAttempt] = field(default_factory=list)

    def attempt(
        self, ran: dict[str, Status | None], *, state: str = RUNNING, cancel: str = "", **body: Any
    ) -> PullAttempt:
        """A new attempt with these statuses of its chains."""
        number = len(self.attempts) + 1
        mode = WHOLE if body.get("whole") else LITE
        rows = []
        for chain, status in ran.items():
            run = f"r{number}{chain[-3]}"
            record_run(self.store, a_run(run, chain=chain, mode=mode), status=None)
            if status is not None:
                self.store.runs.finish(run, status, "", self.store.now())
            rows.append(StartedChain(chain=chain, run=run))
        self.add({"state": state, "chains": rows, "body": {"mode": mode, **body}, "cancel": cancel})
        return self.attempts[-1]

    def add(self, fields: dict[str, Any]) -> None:
        number = len(self.attempts) + 1
        key = {"repository": self.repository.name, "number": 7, "head_sha": SHA, "attempt": number}
        attempt = PullAttempt.model_validate({**key, "request": f"comment:{number}", **fields})
        assert self.store.pulls.add(attempt)
        self.attempts.append(attempt)

    @property
    def facts(self) -> PullFacts:
        """The facts after the newest attempt."""
        newest = self.attempts[-1]
        return facts_of(self.store, newest, self.repository, certified(self.store, newest))

    @property
    def conclusion(self) -> Conclusion:
        return conclusion(self.facts, self.repository.gate)


@pytest.fixture
def commit(store: Store, repository: Repository) -> Commit:
    return Commit(store, repository.model_copy(update={"mode": LITE, "gate": "required"}))


def test_pass_of_a_full_run_replaces_no_regression_of_a_lite_run(commit: Commit) -> None:
    commit.attempt({A: BAD, B: GOOD})
    commit.attempt({A: GOOD}, whole=True, chains=(A,))
    assert commit.conclusion is Conclusion.FAILURE
    shown = [(chain.chain, chain.status) for chain in commit.facts.chains]
    assert shown == [(f"{A} ({WHOLE})", GOOD), (A, BAD), (B, GOOD)]
    assert f"--mode {LITE} " in commit.facts.command, "that of the regression"


def test_full_run_of_all_chains_does_not_replace_their_lite_runs(commit: Commit) -> None:
    commit.attempt({A: BAD, B: GOOD})
    commit.attempt({A: GOOD, B: GOOD}, whole=True)
    assert commit.conclusion is Conclusion.FAILURE
    commit.attempt({A: GOOD, B: GOOD})
    assert commit.conclusion is Conclusion.SUCCESS


def test_pass_of_a_lite_run_replaces_no_regression_of_a_full_run(commit: Commit) -> None:
    commit.attempt({A: GOOD})
    commit.attempt({A: BAD}, whole=True, chains=(A,))
    commit.attempt({A: GOOD})
    assert commit.conclusion is Conclusion.FAILURE
    commit.attempt({A: GOOD}, whole=True, chains=(A,))
    assert commit.conclusion is Conclusion.SUCCESS


def test_full_run_alone_proves_no_required_mode(commit: Commit) -> None:
    commit.attempt({}, state="skipped")
    commit.attempt({A: GOOD}, whole=True)
    assert commit.facts.partial
    assert commit.conclusion is Conclusion.ACTION_REQUIRED
    commit.attempt({A: GOOD})
    assert commit.conclusion is Conclusion.SUCCESS


def test_report_waits_for_a_full_run_of_an_earlier_attempt(commit: Commit) -> None:
    commit.attempt({A: GOOD})
    commit.attempt({A: None}, whole=True, chains=(A,))
    commit.attempt({A: GOOD})
    assert commit.facts.state is State.RUNNING


def test_cancelled_request_of_a_full_run_is_forgotten(commit: Commit) -> None:
    commit.attempt({A: GOOD})
    commit.attempt({A: Status.CANCELLED}, whole=True, cancel="cancelled by maintainer")
    assert commit.conclusion is Conclusion.CANCELLED
    commit.attempt({A: GOOD})
    assert commit.conclusion is Conclusion.SUCCESS


def test_cancelled_full_run_hides_no_earlier_regression(commit: Commit) -> None:
    commit.attempt({A: GOOD})
    commit.attempt({A: BAD}, whole=True)
    commit.attempt({A: Status.CANCELLED}, whole=True, cancel="cancelled by maintainer")
    commit.attempt({A: GOOD})
    assert commit.conclusion is Conclusion.FAILURE


@pytest.mark.parametrize("state", [RUNNING, UNCONCERNED])
@pytest.mark.parametrize(("first", "after"), [(BAD, Conclusion.FAILURE), (GOOD, Conclusion.SUCCESS)])
def test_rerun_without_chains_repeats_the_earlier_conclusion(
    commit: Commit, state: str, first: Status, after: Conclusion
) -> None:
    commit.attempt({A: first})
    commit.attempt({}, state=state, failed=True, unconcerned="every selected chain has passed before")
    assert commit.conclusion is after
    assert commit.facts.reason == "every selected chain has passed before"


def test_unconcerned_change_stays_skipped_in_each_later_attempt(commit: Commit) -> None:
    commit.attempt({}, state=UNCONCERNED, unconcerned="none of 3 chains uses it")
    assert commit.conclusion is Conclusion.SKIPPED
    commit.attempt({}, failed=True, unconcerned="none of 3 chains uses it")
    assert commit.conclusion is Conclusion.SKIPPED
    commit.attempt({}, whole=True, unconcerned="none of 2 chains uses it")
    assert commit.conclusion is Conclusion.SKIPPED
    commit.attempt({A: BAD}, chains=(A,))
    assert commit.conclusion is Conclusion.FAILURE
    commit.attempt({}, failed=True, unconcerned="none of 3 chains uses it")
    assert commit.conclusion is Conclusion.FAILURE


def test_full_run_without_affected_chains_hides_no_regression(commit: Commit) -> None:
    commit.attempt({A: BAD})
    commit.attempt({}, state=UNCONCERNED, whole=True, unconcerned="none of 1 chain uses it")
    assert commit.conclusion is Conclusion.FAILURE


def test_budget_without_chains_is_not_passed_by_a_full_run(commit: Commit) -> None:
    commit.attempt({A: GOOD}, whole=True, chains=(A,))
    commit.attempt({}, state=DONE, unproven=("chain toy/A/x does not fit",))
    assert commit.conclusion is Conclusion.ACTION_REQUIRED


def test_full_run_that_selected_nothing_is_forgotten(commit: Commit) -> None:
    row = StartedChain(chain=SELECTION, problem="no chain may run", status=Status.CONFIG_ERROR.value)
    commit.attempt({A: GOOD})
    commit.add({"state": RUNNING, "chains": [row], "body": {"mode": WHOLE, "whole": True}})
    assert commit.conclusion is Conclusion.ACTION_REQUIRED
    commit.attempt({A: GOOD})
    assert commit.conclusion is Conclusion.SUCCESS
