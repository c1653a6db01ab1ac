"""Notifications over days: only changes, each once, none in quiet hours."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.mail.inbox import VISION, Inbox
from tests.support.stories import T0, open_store

from tipcflow.config.teams.team import Digest, Quiet, Team
from tipcflow.domain import CheckResult, Status
from tipcflow.domain.run.drains import Drain, DrainsDocument
from tipcflow.execute.alerts.track import track_alerts
from tipcflow.execute.notices.notify import Pass, notify

# A period without quiet hours starts at 12:00 UTC.
NIGHT = Quiet(start="00:00", end="12:00")


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    with open_store(tmp_path / "own.db") as store:
        yield Inbox(store)


def test_a_problem_and_its_end_are_sent_once_each(inbox: Inbox) -> None:
    inbox.run(0, Status.PASS)
    assert inbox.notify(0.5) == []
    inbox.run(1, Status.FAILED)
    assert inbox.notify(1.1) == ["tipcflow vision: failed clas/a/x"]
    assert inbox.notify(1.2) == []
    inbox.run(2, Status.FAILED)
    assert inbox.notify(2.1) == [], "the state has not changed"
    inbox.run(3, Status.PASS)
    assert inbox.notify(3.1) == ["tipcflow vision: passes again clas/a/x"]
    assert inbox.notify(3.2) == []
    inbox.run(4, Status.FAILED)
    assert inbox.notify(4.1) == ["tipcflow vision: failed clas/a/x"]
    (_, message) = inbox.sent[0]
    assert message.lines == (
        "failed: clas/a/x (lite_train_lite_infer on local, paddle 1)",
        "  reason: reason of day 1",
        "  since 2026-11-19 11:06 UTC, run clas-a-x-1; last pass clas-a-x-0",
        "  belongs to: vision",
    )
    assert message.links["clas/a/x failed"] == "http://af/certification/runs/clas-a-x-1"


def test_another_kind_of_problem_is_another_state(inbox: Inbox) -> None:
    inbox.run(0, Status.PASS)
    inbox.run(1, Status.INFRA_FAILURE)
    assert inbox.notify(1.1) == ["tipcflow vision: infra_failure clas/a/x"]
    assert inbox.sent[0][1].lines[-1] == "  belongs to: the nodes"
    inbox.run(2, Status.FAILED)
    assert inbox.notify(2.1) == ["tipcflow vision: failed clas/a/x"]
    inbox.run(3, Status.PASS)
    assert inbox.notify(3.1) == ["tipcflow vision: passes again clas/a/x"]


def test_a_cancelled_run_changes_nothing(inbox: Inbox) -> None:
    inbox.run(0, Status.PASS)
    inbox.run(1, Status.FAILED)
    inbox.notify(1.1)
    inbox.run(2, Status.CANCELLED)
    assert inbox.notify(2.1) == []


def test_many_chains_are_one_message_and_teams_get_their_own(inbox: Inbox) -> None:
    speech = Team(name="speech", chains=("speech/*",), slack="y")
    lost = Team(name="lab", kinds=("infrastructure",), slack="z")
    for chain in ("clas/a/x", "clas/b/x", "speech/c/x"):
        inbox.run(1, Status.FAILED, chain)
    inbox.run(1, Status.INFRA_FAILURE, "clas/d/x")
    assert inbox.notify(1.1, VISION, speech, lost) == [
        "tipcflow vision: 3 new problems",
        "tipcflow speech: failed speech/c/x",
        "tipcflow lab: infra_failure clas/d/x",
    ]
    assert inbox.last == "3 messages sent, 0 not sent; 0 of 3 teams have quiet hours"


def test_quiet_hours_delay_messages_and_drop_problems_that_pass(inbox: Inbox) -> None:
    quiet = VISION.model_copy(update={"quiet": Quiet(start="00:00", end="23:59")})
    inbox.run(1, Status.FAILED)
    inbox.run(1, Status.FAILED, "clas/b/x")
    assert inbox.notify(1.1, quiet) == []
    assert inbox.last.endswith("1 of 1 teams have quiet hours")
    inbox.run(1.2, Status.PASS, "clas/b/x")
    assert inbox.notify(1.3) == ["tipcflow vision: failed clas/a/x"]


def test_a_failure_is_repeated_and_nothing_is_sent_twice(inbox: Inbox) -> None:
    inbox.run(1, Status.FAILED)
    inbox.fails = True
    assert inbox.notify(1.1) == []
    assert inbox.lines == [
        "team vision: a message was not sent, the next pass repeats it: ConnectionError: mail server is away"
    ]
    inbox.fails = False
    assert len(inbox.notify(1.2)) == 1
    inbox.run(2, Status.PASS)
    inbox.fails = True
    assert inbox.notify(2.1) == []
    inbox.fails = False
    assert inbox.notify(2.2) == ["tipcflow vision: passes again clas/a/x"]
    assert inbox.notify(2.3) == []


def test_a_problem_without_runs_for_weeks_still_ends(inbox: Inbox) -> None:
    inbox.run(1, Status.FAILED)
    inbox.notify(1.1)
    assert inbox.notify(20) == []
    inbox.run(21, Status.PASS)
    assert inbox.notify(21.1) == ["tipcflow vision: passes again clas/a/x"]


def test_old_problems_are_not_news_for_a_new_team(inbox: Inbox) -> None:
    inbox.run(0, Status.FAILED)
    assert inbox.notify(8) == []


def test_the_digest_is_sent_once_a_week(inbox: Inbox) -> None:
    team = VISION.model_copy(update={"digest": Digest(day="monday", after="00:00")})
    inbox.run(1, Status.FAILED)
    inbox.run(1, Status.PASS, "clas/b/x")
    inbox.run(1, Status.FAILED, "speech/c/x")
    first = inbox.notify(1.1, team)
    assert first == ["tipcflow vision: failed clas/a/x", "tipcflow vision: week 2026-W47, 1 new, 0 known"]
    assert "1 of 2 chains pass on paddle 1; 1 broken (new)" in inbox.sent[-1][1].text
    assert "speech/c/x" not in inbox.sent[-1][1].text
    assert inbox.notify(1.2, team) == []
    assert inbox.notify(8.2, team) == ["tipcflow vision: week 2026-W48, 0 new, 1 known"]


def test_a_digest_that_was_not_sent_is_sent_by_the_next_pass(inbox: Inbox) -> None:
    team = VISION.model_copy(update={"digest": Digest(day="monday", after="00:00")})
    inbox.fails = True
    assert inbox.notify(1.1, team) == []
    inbox.fails = False
    assert inbox.notify(1.2, team) == ["tipcflow vision: week 2026-W47, 0 new, 0 known"]
    assert inbox.notify(1.3, team) == []


def test_the_digest_lists_open_alerts_by_cause(inbox: Inbox) -> None:
    team = VISION.model_copy(update={"digest": Digest(day="monday", after="00:00"), "kinds": ()})
    for chain in ("clas/a/x", "clas/b/x", "speech/c/x"):
        inbox.run(0, Status.PASS, chain)
        inbox.run(1, Status.REGRESSION, chain, framework="paddle 2")
        run = inbox.store.runs.get(f"{chain.replace('/', '-')}-1")
        common = {"step": "v/train", "metric": "batch_cost", "values": {"ratio": 1.25}}
        result = CheckResult(check="speed.batch_cost", status=Status.REGRESSION, reason="slow", **common)
        track_alerts(inbox.store, run, [result])
    inbox.notify(1.1, team)
    lines = inbox.sent[-1][1].lines
    start = lines.index("open alerts: 2 alerts of 2 chains with 1 cause: 2 new")
    assert lines[start + 1 : start + 4] == (
        "framework 1 -> 2: 2 alerts",
        "  alert 2, new: clas/b/x (lite_train_lite_infer on an unknown environment): batch_cost +25.0 %",
        "    since 2026-11-19 11:06 UTC, run clas-b-x-1; vision",
    )
    assert "Alerts" in inbox.sent[-1][1].links


def test_drained_node_is_sent_once_to_teams_that_get_node_problems(inbox: Inbox) -> None:
    inbox.run(0, Status.PASS)
    drain = Drain(cluster="lab", node="b", at=T0, who="tipcflow", why="probe cpu +40.0 % slower", doubtful=("r",))
    inbox.store.documents.merge("clas-a-x-0", DrainsDocument, {drain.key: drain})
    inbox.fails = True
    assert inbox.notify(1) == []
    inbox.fails = False
    assert inbox.notify(1.1) == ["tipcflow vision: drained lab/b"]
    assert inbox.notify(1.2) == []
    assert inbox.sent[0][1].lines == (
        "drained by tipcflow: node b of cluster lab gets no runs",
        "  reason: probe cpu +40.0 % slower",
        "  doubtful: 1 run since then",
        "  undo: tipcflow nodes undrain b --cluster lab --because '…'",
    )
    other = VISION.model_copy(update={"name": "other", "kinds": ("broken",)})
    assert inbox.notify(1.3, other) == []


def test_without_teams_nothing_is_sent(inbox: Inbox) -> None:
    this = Pass(inbox.store, inbox.send, "", inbox.lines.append, T0)
    assert notify(this, ()) == "no teams in configs/teams: nothing is sent"
