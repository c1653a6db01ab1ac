"""Issues follow alerts, over HTTP to the stand-in; outages, lost responses and restarts double nothing."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from tests.support.github.api import GitHub, serving
from tests.support.stories import T0, a_run, open_store

from tipcflow.config.repository import Repositories, Repository
from tipcflow.domain import CheckResult, Status
from tipcflow.domain.alert.entry import AlertState
from tipcflow.execute.alerts.decide import alerts_named, comment, set_state
from tipcflow.execute.alerts.track import track_alerts
from tipcflow.execute.overview.alerts import load_alert
from tipcflow.github.client import Client
from tipcflow.github.client.connect import api
from tipcflow.github.flow.deliver import deliver
from tipcflow.github.flow.issues import write_issues
from tipcflow.store import Store

pytestmark = pytest.mark.slow

WORSE, GREEN = Status.REGRESSION, Status.PASS
DAY = 86_400.0


class Tracker:
    """Alerts of the suite `toy`, and the issues that the stand-in shows."""

    def __init__(self, store: Store, github: GitHub, url: str) -> None:
        self.store, self.github, self.url = store, github, url
        self.repository = Repository(name="o/r", connection="app", suite="toy", cluster="two", alerts="issues")

    def judge(self, day: int, status: Status, chain: str = "toy/a/train", ratio: float = 1.25) -> None:
        """A run whose only metric has this status."""
        run = a_run(
            f"{chain.replace('/', '-')}-{day}",
            chain=chain,
            suite=chain.split("/")[0],
            status=status,
            environment="cpu",
            framework=f"paddle {1 if status is GREEN else 2}",
            created_at=T0 + day * DAY,
            ended_at=T0 + day * DAY + 9,
        )
        self.store.runs.create(run)
        common: dict[str, Any] = {"step": "v/train", "metric": "batch_cost", "values": {"ratio": ratio}}
        track_alerts(
            self.store, run, [CheckResult(check="speed.batch_cost", status=status, reason="slow", **common)]
        )

    def decide(self, state: AlertState, number: int = 1, who: str = "mia", why: str = "known") -> None:
        set_state(self.store, alerts_named(self.store, number, group=False), state, who=who, why=why)

    def write(self) -> int:
        return write_issues(self.store, self.repository, site="https://airflow.test")

    def deliver(self) -> None:
        """One delivery of all messages; their pauses have passed."""
        with self.store.database.write() as connection:
            connection.execute(text("UPDATE messages SET due_at = 0"))
        client = Client(api(self.url, None, between_writes_s=0), self.repository)
        deliver(self.store, Repositories({"r": self.repository}), lambda _: client)

    def settle(self) -> None:
        self.write()
        self.deliver()

    @property
    def states(self) -> list[tuple[str, str]]:
        return [(issue["state"], issue.get("state_reason", "")) for issue in self.github.issues]

    @property
    def comments(self) -> list[str]:
        """The comments without their hidden first line."""
        return [each["body"].partition("\n")[2].strip() for each in self.github.comments]

    @property
    def writes(self) -> int:
        return sum(verb != "GET" for verb, _, _ in self.github.log)


@pytest.fixture
def tracker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tracker]:
    # The client's own repetitions take seconds; here it is the outbox that repeats.
    monkeypatch.setattr(import_module("tipcflow.github.client.connect"), "RETRIES", 0)
    github = GitHub()
    with serving(github) as url, open_store(tmp_path / "own.db") as store:
        yield Tracker(store, github, url)


def test_issue_follows_the_alert_from_its_begin_to_its_return(tracker: Tracker) -> None:
    tracker.judge(0, GREEN)
    tracker.judge(1, WORSE)
    tracker.settle()
    (issue,) = tracker.github.issues
    assert issue["title"] == "Regression of toy/a/train: batch_cost +25.0 %"
    assert issue["body"].startswith(
        "<!-- tipcflow:tipcflow:alert:1:toy-a-train-1 -->\n\nConfirmed regression of toy/a/train"
    )
    assert load_alert(tracker.store, 1).issues == {"o/r": "https://github.test/o/r/issues/11"}
    tracker.decide(AlertState.ACKNOWLEDGED, why="on it")
    tracker.settle()
    tracker.judge(2, GREEN)
    tracker.settle()
    assert tracker.states == [("closed", "completed")]
    tracker.judge(3, WORSE)
    tracker.settle()
    assert tracker.states[0][0] == "open"
    name = "[Alert 1](https://airflow.test/certification/alerts/1), toy/a/train"
    runs = "https://airflow.test/certification/runs"
    assert tracker.comments == [
        f"- {name}: acknowledged: on it (mia)",
        f"- {name}: the level returned in run [toy-a-train-2]({runs}/toy-a-train-2)",
        f"- {name}: the regression is back in run [toy-a-train-3]({runs}/toy-a-train-3): speed.batch_cost: slow",
    ]
    tracker.decide(AlertState.INVALID, why="another load")
    tracker.settle()
    assert tracker.states == [("closed", "not_planned")]


def test_later_runs_change_the_figures_without_a_comment(tracker: Tracker) -> None:
    tracker.judge(1, WORSE)
    tracker.settle()
    assert tracker.write() == 0
    before = tracker.writes
    tracker.judge(2, WORSE, ratio=1.5)
    comment(tracker.store, alerts_named(tracker.store, 1, group=False), "an internal remark", who="mia")
    tracker.settle()
    assert "+50.0 %" in tracker.github.issues[0]["body"]
    assert tracker.github.issues[0]["title"].endswith("batch_cost +50.0 %")
    assert tracker.comments == []
    assert tracker.writes == before + 1
    tracker.settle()
    assert tracker.writes == before + 1, "nothing has changed"


def test_many_chains_with_the_same_cause_share_an_issue(tracker: Tracker) -> None:
    for chain in ("toy/a/train", "toy/b/train", "other/c/train"):
        tracker.judge(0, GREEN, chain)
        tracker.judge(1, WORSE, chain)
    tracker.settle()
    tracker.judge(1, GREEN, "toy/d/train")
    tracker.judge(2, WORSE, "toy/d/train")
    tracker.settle()
    (issue,) = tracker.github.issues
    assert issue["title"] == "Regression of 3 chains: framework 1 -> 2"
    assert "1 alert of other suites with the same cause." in issue["body"]
    assert [line.count("has the same cause") for line in tracker.comments] == [1]
    for chain in ("toy/a/train", "toy/b/train"):
        tracker.judge(3, GREEN, chain)
    tracker.settle()
    assert tracker.states == [("open", "")]
    tracker.judge(4, GREEN, "toy/d/train")
    tracker.settle()
    assert tracker.states == [("closed", "completed")]
    assert len(tracker.comments) == 3


def test_title_of_a_user_is_kept(tracker: Tracker) -> None:
    tracker.judge(1, WORSE)
    tracker.settle()
    tracker.github.issues[0]["title"] = "Slow kernel"
    tracker.judge(2, WORSE, ratio=1.5)
    tracker.settle()
    assert tracker.github.issues[0]["title"] == "Slow kernel"


def test_issue_that_a_user_closed_stays_closed(tracker: Tracker) -> None:
    tracker.judge(1, WORSE)
    tracker.settle()
    tracker.github.issues[0]["state"] = "closed"
    tracker.judge(2, WORSE, ratio=1.5)
    tracker.decide(AlertState.ACKNOWLEDGED)
    tracker.settle()
    assert tracker.states[0][0] == "closed"
    tracker.judge(3, GREEN)
    tracker.settle()
    tracker.judge(4, WORSE)
    tracker.settle()
    assert tracker.states[0][0] == "open"


def test_outage_loses_and_doubles_nothing(tracker: Tracker) -> None:
    """GitHub is away while an alert opens, ends and returns, and again later."""
    tracker.github.away = True
    tracker.judge(1, WORSE)
    tracker.settle()
    tracker.judge(2, GREEN)
    tracker.settle()
    assert tracker.github.log == []
    tracker.github.away = False
    tracker.settle()
    assert tracker.github.issues == [], "an alert that has ended gets no issue"
    tracker.judge(3, WORSE)
    tracker.settle()
    assert tracker.states == [("open", "")]
    tracker.github.away = True
    tracker.decide(AlertState.ACKNOWLEDGED)
    tracker.settle()
    tracker.judge(4, GREEN)
    tracker.settle()
    tracker.github.away = False
    tracker.settle()
    tracker.settle()
    assert tracker.states == [("closed", "completed")]
    assert ["acknowledged" in tracker.comments[0], "level returned" in tracker.comments[1]] == [True, True]
    assert len(tracker.comments) == 2
    assert tracker.store.messages.waiting() == []


@pytest.mark.parametrize("lost", ["POST", "PATCH"])
def test_lost_response_doubles_nothing(tracker: Tracker, lost: str) -> None:
    tracker.judge(1, WORSE)
    if lost == "POST":
        tracker.github.faults = [("POST", 502, {}, True)]
    tracker.settle()
    tracker.settle()
    assert len(tracker.github.issues) == 1
    tracker.judge(2, GREEN)
    # The requests change the body, then the state, then add the comment.
    tracker.github.faults = [(lost, 502, {}, True)]
    for _ in range(4):
        tracker.settle()
    assert tracker.states == [("closed", "completed")]
    assert len(tracker.comments) == 1
    assert tracker.store.messages.waiting() == []


def test_issue_is_sent_again_after_a_restart_without_effect(tracker: Tracker) -> None:
    """The process dies after GitHub has everything, and before the outbox knows."""
    tracker.judge(1, WORSE)
    tracker.settle()
    tracker.judge(2, GREEN)
    tracker.settle()
    before = tracker.writes
    with tracker.store.database.write() as connection:
        connection.execute(text("UPDATE messages SET sent_revision = 0"))
        connection.execute(text("DELETE FROM documents WHERE name = 'alert_issues'"))
    tracker.deliver()
    assert tracker.writes == before
    assert tracker.store.messages.waiting() == []


def test_alerts_of_another_database_get_their_own_issue(tracker: Tracker) -> None:
    tracker.judge(1, WORSE)
    marker = "<!-- tipcflow:tipcflow:alert:1:another-run -->"
    foreign = {"user": {"login": "tipcflow[bot]"}, "state": "closed", "title": "t", "body": f"{marker}\n"}
    tracker.github.issues = [{"number": 11, **foreign}]
    tracker.settle()
    assert [issue["number"] for issue in tracker.github.issues] == [11, 12]
    assert tracker.github.issues[0]["body"] == f"{marker}\n"


@pytest.mark.parametrize(
    "fields", [{"alerts": "never"}, {"suite": "other"}, {"chains": ("toy/b/*",)}], ids=["never", "suite", "chains"]
)
def test_repository_gets_no_issue_unless_configured(tracker: Tracker, fields: dict[str, Any]) -> None:
    tracker.repository = tracker.repository.model_copy(update=fields)
    tracker.judge(1, WORSE)
    assert tracker.write() == 0
    assert tracker.store.messages.waiting() == []


def test_alert_that_a_user_has_closed_gets_no_issue(tracker: Tracker) -> None:
    tracker.judge(1, WORSE)
    tracker.decide(AlertState.EXPECTED)
    assert tracker.write() == 0
