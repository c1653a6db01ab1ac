"""Alerts as messages: opened, reopened and ended, each once, with one message for one cause."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.mail.inbox import DAY, VISION, Inbox
from tests.support.stories import T0, a_run, open_store

from tipcflow.config.teams.team import Quiet, Team
from tipcflow.domain import CheckResult, Status
from tipcflow.domain.alert.entry import AlertState
from tipcflow.domain.run.notices import NoticesDocument, Notified
from tipcflow.execute.alerts.decide import alerts_named, set_state
from tipcflow.execute.alerts.track import track_alerts

WORSE, GREEN, SLOW = Status.REGRESSION, Status.PASS, Status.UNCONFIRMED
QUIET = VISION.model_copy(update={"quiet": Quiet(start="00:00", end="23:59")})


class Alerts(Inbox):
    """An inbox whose runs are judged, with a clock of its own."""

    clock = T0

    def judge(self, day: float, status: Status, chain: str = "clas/a/x", **fields: Any) -> None:
        """A run whose only metric has this status; the clock shows its end."""
        self.clock = T0 + day * DAY + 60
        self.store.now = lambda: self.clock  # type: ignore[method-assign]
        known = {"framework": f"paddle {1 if status is GREEN else 2}", "environment": "cpu", **fields}
        self.run(day, status, chain, **known)
        run = self.store.runs.get(f"{chain.replace('/', '-')}-{day}")
        values = {"ratio": 1.25}
        reason = f"0.125 s, baseline 0.1 s (+25.0 %) on day {day:g}"
        common: dict[str, Any] = {"step": "v/train", "metric": "batch_cost", "values": values}
        track_alerts(
            self.store, run, [CheckResult(check="speed.batch_cost", status=status, reason=reason, **common)]
        )

    def decide(self, state: AlertState, number: int = 1) -> None:
        """A user's decision."""
        set_state(self.store, alerts_named(self.store, number, group=False), state, who="mia", why="known")


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Alerts]:
    with open_store(tmp_path / "own.db") as store:
        yield Alerts(store)


def test_opened_ended_and_reopened_alert_is_sent(inbox: Alerts) -> None:
    inbox.judge(0, GREEN)
    inbox.judge(1, WORSE)
    assert inbox.notify(1.1) == ["tipcflow vision: new alert 1: clas/a/x"]
    assert inbox.sent[0][1].text.splitlines() == [
        "new alert 1: clas/a/x (lite_train_lite_infer on cpu)",
        "  batch_cost +25.0 %",
        "  reason: speed.batch_cost: 0.125 s, baseline 0.1 s (+25.0 %) on day 1",
        "  since 2026-11-19 11:06 UTC, run clas-a-x-1; last pass clas-a-x-0",
        "  changed since: framework 1 -> 2",
        "  belongs to: vision",
        "alert 1: http://af/certification/alerts/1",
        "Alerts: http://af/certification/alerts",
        "Today: http://af/certification/today",
    ]
    inbox.judge(2, WORSE)
    assert inbox.notify(2.1) == [], "a later run is attached to the alert"
    inbox.judge(3, GREEN)
    assert inbox.notify(3.1) == ["tipcflow vision: alert 1 went away: clas/a/x"]
    assert inbox.sent[-1][1].lines == (
        "alert 1 went away: clas/a/x (lite_train_lite_infer on cpu)",
        "  batch_cost +25.0 %",
        "  was worse since 2026-11-19 11:06 UTC (run clas-a-x-1), the level returned in run clas-a-x-3",
    )
    assert inbox.notify(3.2) == []
    inbox.judge(4, WORSE)
    assert inbox.notify(4.1) == ["tipcflow vision: reopened alert 1: clas/a/x"]
    assert "  back since run clas-a-x-4" in inbox.sent[-1][1].lines
    assert inbox.notify(4.2) == []


def test_many_chains_with_the_same_cause_share_a_notice(inbox: Alerts) -> None:
    chains = [f"clas/{letter}/x" for letter in "abcdefgh"]
    for chain in (*chains, "speech/z/x"):
        inbox.judge(0, GREEN, chain)
        inbox.judge(1, WORSE, chain)
    set_state(
        inbox.store, alerts_named(inbox.store, 2, group=False), AlertState.NEW, who="mia", why="", owner="kernels"
    )
    assert inbox.notify(1.1) == ["tipcflow vision: new alert 1: 8 chains"]
    lines = inbox.sent[0][1].lines
    assert lines[:2] == (
        "new alert 1: 8 chains, 8 alerts with the same cause",
        "  clas/a/x (lite_train_lite_infer on cpu): batch_cost +25.0 %",
    )
    assert lines[6] == "  and 3 more, see the page of the alert"
    assert lines[-2:] == ("  changed since: framework 1 -> 2", "  belongs to: vision, kernels")
    inbox.judge(1.2, GREEN, "clas/i/x", framework="paddle 1")
    inbox.judge(1.3, WORSE, "clas/i/x")
    assert inbox.notify(1.4) == ["tipcflow vision: new alert 10: clas/i/x"]
    assert "  same cause as alert 1" in inbox.sent[-1][1].lines
    for chain in chains:
        inbox.judge(2, GREEN, chain)
    assert inbox.notify(2.1) == ["tipcflow vision: alert 1 went away: 8 chains"]


@pytest.mark.parametrize("state", [AlertState.ACKNOWLEDGED, AlertState.EXPECTED, AlertState.INVALID])
def test_decided_alert_is_not_sent_and_not_repeated(inbox: Alerts, state: AlertState) -> None:
    inbox.judge(1, WORSE)
    inbox.decide(state)
    assert inbox.notify(1.1) == []
    inbox.judge(1.2, WORSE)
    inbox.judge(1.3, GREEN)
    inbox.judge(1.4, WORSE) if state is AlertState.ACKNOWLEDGED else inbox.judge(1.4, GREEN)
    expected = ["tipcflow vision: reopened alert 1: clas/a/x"] if state is AlertState.ACKNOWLEDGED else []
    assert inbox.notify(1.5) == expected


def test_regression_after_a_gap_is_not_sent_again(inbox: Alerts) -> None:
    """A green run that did not measure the metric does not end the alert."""
    inbox.judge(1, WORSE)
    assert len(inbox.notify(1.1)) == 1
    inbox.run(2, GREEN, environment="cpu")
    assert inbox.notify(2.1) == []
    inbox.judge(3, WORSE)
    assert inbox.notify(3.1) == []


def test_suspected_regression_that_is_confirmed_is_an_alert(inbox: Alerts) -> None:
    inbox.judge(1, SLOW)
    assert inbox.notify(1.1) == ["tipcflow vision: unconfirmed clas/a/x"]
    inbox.judge(2, WORSE)
    assert inbox.notify(2.1) == ["tipcflow vision: new alert 1: clas/a/x"]
    inbox.judge(3, GREEN)
    assert inbox.notify(3.1) == ["tipcflow vision: alert 1 went away: clas/a/x"]
    assert inbox.notify(3.2) == []


def test_other_problems_are_in_the_same_message(inbox: Alerts) -> None:
    inbox.judge(1, WORSE)
    inbox.run(1, Status.FAILED, "clas/b/x")
    assert inbox.notify(1.1) == ["tipcflow vision: 1 new alert, 1 new problem"]
    inbox.judge(2, GREEN)
    inbox.run(2, GREEN, "clas/b/x")
    assert inbox.notify(2.1) == ["tipcflow vision: 1 alert went away, 1 passes again"]


def test_alert_that_opens_and_ends_in_quiet_hours_is_not_sent(inbox: Alerts) -> None:
    inbox.judge(1, WORSE)
    inbox.judge(1, WORSE, "clas/b/x", framework="paddle 3")
    assert inbox.notify(1.1, QUIET) == []
    inbox.judge(1.2, GREEN)
    assert inbox.notify(1.3) == ["tipcflow vision: new alert 2: clas/b/x"]


def test_failure_is_repeated_and_nothing_is_sent_twice(inbox: Alerts) -> None:
    inbox.judge(1, WORSE)
    inbox.fails = True
    assert inbox.notify(1.1) == []
    inbox.fails = False
    assert inbox.notify(1.2) == ["tipcflow vision: new alert 1: clas/a/x"]
    inbox.judge(2, GREEN)
    inbox.fails = True
    assert inbox.notify(2.1) == []
    inbox.fails = False
    assert inbox.notify(2.2) == ["tipcflow vision: alert 1 went away: clas/a/x"]
    assert inbox.notify(2.3) == []


def test_sender_that_is_killed_sends_nothing_twice(inbox: Alerts, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(team: Team, message: object) -> None:
        raise KeyboardInterrupt

    inbox.judge(1, WORSE)
    monkeypatch.setattr(inbox, "send", killed)
    with pytest.raises(KeyboardInterrupt):
        inbox.notify(1.1)
    monkeypatch.undo()
    assert inbox.notify(1.2) == []


def test_accepted_baseline_is_named_with_its_author(inbox: Alerts) -> None:
    from tipcflow.store import Baseline

    inbox.judge(1, WORSE)
    inbox.notify(1.1)
    line = {"chain": "clas/a/x", "mode": a_run().mode, "environment": "cpu", "run": "clas-a-x-1"}
    value = {"step": "v/train", "leg": "", "metric": "batch_cost", "value": 0.125, "unit": "s"}
    accepted = Baseline(**line, **value, who="tom", why="new kernel", accepted_at=T0 + 1.5 * DAY)
    inbox.store.baselines.accept_one(accepted)
    inbox.judge(2, GREEN)
    inbox.notify(2.1)
    assert inbox.sent[-1][1].lines[-1].endswith("run clas-a-x-2 (tom: baseline accepted: new kernel)")


def test_team_without_regressions_or_the_chain_gets_no_alert(inbox: Alerts) -> None:
    lab = Team(name="lab", kinds=("infrastructure",), slack="y")
    speech = Team(name="speech", chains=("speech/*",), slack="z")
    inbox.judge(1, WORSE)
    assert inbox.notify(1.1, lab, speech) == []
    assert inbox.notify(1.2) == ["tipcflow vision: new alert 1: clas/a/x"]
    assert inbox.notify(9, Team(name="late", slack="x")) == [], "an old alert is not news for a new team"


def test_problem_of_an_earlier_version_is_not_sent_again_as_an_alert(inbox: Alerts) -> None:
    inbox.judge(1, WORSE)
    mark = Notified(chain="clas/a/x", mode=a_run().mode, environment="cpu", at=T0)
    inbox.store.documents.put("clas-a-x-1", NoticesDocument({"vision": mark}))
    assert inbox.notify(1.1) == []
    inbox.judge(2, GREEN)
    assert inbox.notify(2.1) == ["tipcflow vision: passes again clas/a/x"]
