"""Issues about alerts: golden files of the body and of comments, titles, states and hostile text."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.expected.golden import assert_golden

from tipcflow.config.repository import Repository
from tipcflow.domain.alert.entry import Alert, AlertEvent, AlertState, EventKind, Moved
from tipcflow.github.report import IssueFacts, issue_note, issue_text, issue_title

GOLDEN = Path(__file__).parents[3] / "golden" / "github" / "issue"
T0 = 1_795_000_000.0
SEARCH = "tipcflow bisect m.txt batch_cost --good 3f2c1e0a9b8c --bad 7d6e5f4a3b2c --suite toy"


def alert(number: int = 1, name: str = "a", **fields: Any) -> Alert:
    slower = Moved(
        check="speed.batch_cost",
        step="norm_train/train",
        metric="batch_cost",
        ratio=1.31,
        first=f"{name}-2",
        reason="0.131 s, baseline 0.1 s (+31.0 %)",
    )
    known: dict[str, Any] = {
        "number": number,
        "group": 1,
        "chain": f"toy/{name}/train_infer_python",
        "suite": "toy",
        "mode": "lite_train_lite_infer",
        "environment": "2 nodes, cpu",
        "state_at": T0,
        "first": f"{name}-2",
        "first_at": T0,
        "last_good": f"{name}-1",
        "suspects": ("framework 3.1 -> 3.2", "node node-a -> node-b"),
        "metrics": (slower, slower.model_copy(update={"metric": "ips", "ratio": 0.76, "reason": "-24.0 %"})),
        "newest": f"{name}-2",
        "newest_at": T0,
    }
    return Alert(**(known | fields))


def facts(*alerts: Alert, **fields: Any) -> IssueFacts:
    known = {"group": 1, "first": "a-2", "search": SEARCH, "site": "https://airflow.example.org"}
    return IssueFacts(alerts=alerts or (alert(),), **(known | fields))


def event(kind: EventKind, text: str = "", **fields: Any) -> AlertEvent:
    known = {"alert": 1, "ordinal": 2, "at": T0, "who": "tipcflow", "run": "a-3"}
    return AlertEvent(kind=kind, text=text, **(known | fields))


def test_issue_of_a_chain_has_the_expected_text(repository: Repository) -> None:
    assert issue_title(facts()) == "Regression of toy/a/train_infer_python: batch_cost +31.0 %, ips -24.0 %"
    assert_golden(GOLDEN / "chain.md", issue_text(facts(), repository))


def test_issue_of_many_chains_has_the_expected_text(repository: Repository) -> None:
    gone = {"state": AlertState.FIXED, "gone": "b-3", "gone_at": T0 + 9, "owner": "kernels"}
    many = facts(alert(), alert(3, "b", suspects=("framework 3.1 -> 3.2",), **gone), others=4)
    assert issue_title(many) == "Regression of 2 chains: framework 3.1 -> 3.2"
    assert_golden(GOLDEN / "chains.md", issue_text(many, repository))


def test_issue_without_addresses_has_the_expected_text(repository: Repository) -> None:
    bare = alert(suspects=(), last_good="", environment="")
    assert_golden(GOLDEN / "bare.md", issue_text(facts(bare, site="", search=""), repository))


def test_issue_counts_rows_beyond_the_limit(repository: Repository) -> None:
    many = facts(*(alert(number + 1, f"c{number}") for number in range(50)))
    text = issue_text(many, repository)
    assert "30 more alerts." in text
    assert "80 more metrics." in text
    assert len(text) < 20_000


def test_comment_of_each_event_has_the_expected_text(repository: Repository) -> None:
    own = facts(alert(), alert(3, "b"))
    events = [
        event(EventKind.OPENED, alert=3, run="b-2"),
        event(EventKind.STATE, "acknowledged: on it", who="mia", run=""),
        event(EventKind.SEEN, "still there"),
        event(EventKind.GONE, "the level returned", ordinal=4),
        event(EventKind.GONE, "baseline accepted: new kernel", who="tom", alert=3, ordinal=3),
        event(EventKind.REOPENED, "speed.batch_cost: +31.0 %", ordinal=5),
        event(EventKind.COMMENT, "an internal remark", who="mia", ordinal=6),
        event(EventKind.BISECTED, "97 %: 3f2c1e00 'Use new loader' (9 runs, 41 min)", run="", ordinal=7),
    ]
    note = issue_note(own, repository, events, was_open=True)
    assert note is not None
    assert (note.state, note.reason) == ("", "")
    assert_golden(GOLDEN / "comment.md", note.text)


@pytest.mark.parametrize("kind", [EventKind.SEEN, EventKind.OWNER, EventKind.COMMENT])
def test_event_that_changes_no_state_is_not_commented(repository: Repository, kind: EventKind) -> None:
    assert issue_note(facts(), repository, [event(kind)], was_open=True) is None


@pytest.mark.parametrize(
    ("states", "was_open", "expected"),
    [
        ((AlertState.FIXED, AlertState.EXPECTED), True, ("closed", "completed")),
        ((AlertState.EXPECTED, AlertState.INVALID), True, ("closed", "not_planned")),
        ((AlertState.FIXED, AlertState.ACKNOWLEDGED), True, ("", "")),
        ((AlertState.FIXED, AlertState.NEW), False, ("open", "")),
        ((AlertState.FIXED, AlertState.FIXED), False, ("", "")),
    ],
)
def test_issue_is_open_while_any_alert_is_open(
    repository: Repository, states: tuple[AlertState, ...], was_open: bool, expected: tuple[str, str]
) -> None:
    own = facts(*(alert(number + 1, state=state) for number, state in enumerate(states)))
    note = issue_note(own, repository, [event(EventKind.STATE, "x")], was_open=was_open)
    assert note is not None
    assert (note.state, note.reason) == expected


def test_hostile_text_stays_in_its_cell(repository: Repository) -> None:
    bad = "<img src=x> @everyone | [x](http://evil) #12 `code`\n\n# head"
    hostile = alert(owner=bad, suspects=(bad,))
    text = issue_text(facts(hostile), repository)
    text += issue_note(facts(hostile), repository, [event(EventKind.STATE, bad, who=bad)], was_open=True).text  # type: ignore[union-attr]
    for part in ("<img", "@everyone", "[x](http", " #12", "\n# head"):
        assert part not in text
    assert len(issue_title(facts(alert(chain="c" * 500)))) == 200
