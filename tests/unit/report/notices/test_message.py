"""Messages to teams."""

from tipcflow.domain import Status
from tipcflow.report.notices.message import LISTED, Ended, changes_message
from tipcflow.report.overview.today import Problem, State

T0 = 1_795_000_000.0


def problem(name: str, reason: str = "loss is nan") -> Problem:
    return Problem(
        chain=name,
        mode="m",
        cluster="lab",
        environment="e",
        framework="paddle 3",
        kind="broken",
        status=Status.FAILED,
        reason=reason,
        run=f"{name}-2",
        started_at=T0,
        is_new=True,
        first_bad=f"{name}-1",
        first_bad_at=T0,
        suspects=("framework 2 -> 3",),
    )


def test_a_message_has_reason_since_suspects_owner_and_link() -> None:
    message = changes_message("vision", [problem("a")], [], "http://af/")
    assert message.subject == "tipcflow vision: failed a"
    assert message.text.splitlines() == [
        "failed: a (m on lab, paddle 3)",
        "  reason: loss is nan",
        "  since 2026-11-18 11:06 UTC, run a-1; never passed before",
        "  changed since: framework 2 -> 3",
        "  belongs to: vision",
        "a failed: http://af/certification/runs/a-2",
        "Today: http://af/certification/today",
    ]
    assert message.facts["team"] == "vision"


def test_html_is_escaped_and_has_links_only_with_a_site() -> None:
    message = changes_message("vision", [problem("a", "<script>alert(1)</script>\nsecond line")], [], "")
    assert "<script>" not in message.html
    assert "href" not in message.html
    assert message.links == {}


def test_long_lists_are_counted() -> None:
    state = State(
        chain="z",
        suite="s",
        mode="m",
        cluster="lab",
        environment="e",
        framework="paddle 3",
        status=Status.PASS,
        run="z-3",
        started_at=T0,
    )
    ended = Ended(state=state, first_bad="z-1", began_at=T0)
    message = changes_message("vision", [problem(f"c{n}") for n in range(LISTED + 2)], [ended], "http://af")
    assert message.subject == f"tipcflow vision: {LISTED + 2} new problems, 1 passes again"
    assert "and 2 more, see the page Today" in message.lines
