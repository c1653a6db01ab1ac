"""Who may start what: every rule of docs/reference/github.md as (event, repository, facts) -> decisions."""

import random
from typing import Any

import pytest

from tipcflow.config.repository import Approvers, Repository
from tipcflow.github.trust import Decision, Do, ExternalId, Known, Previous, RunKey, Why, decide
from tipcflow.github.webhook import CheckRunEvent, CommentEvent, MergeGroupEvent, PullRequestEvent, PushEvent
from tipcflow.github.webhook.events import Event

NAME = "Codertocat/Hello-World"
OLD, HEAD, BASE = "0" * 39 + "1", "a" * 40, "b" * 40
KNOWN = Known(permission="read", head_sha=HEAD, head_repository=NAME, base_ref="main", author="author")
FORK = Known(permission="write", head_sha=HEAD, head_repository="evil/fork", base_ref="main", author="author")


def pull(**changes: Any) -> Event:
    values = {
        "action": "opened",
        "repository": NAME,
        "sender": "author",
        "sender_type": "User",
        "number": 2,
        "head_sha": HEAD,
        "head_repository": NAME,
        "base_ref": "main",
        "base_sha": BASE,
        "author": "author",
    }
    return PullRequestEvent.model_validate({**values, **changes}, by_alias=False, by_name=True)


def comment(body: str, sender: str = "author", **changes: Any) -> Event:
    values = {
        "action": "created",
        "repository": NAME,
        "sender": sender,
        "sender_type": "User",
        "number": 2,
        "pull_request": "https://api.github.com/x",
        "author": "author",
        "state": "open",
        "comment": 7,
        "body": body,
    }
    return CommentEvent.model_validate({**values, **changes}, by_alias=False, by_name=True)


def pressed(identifier: str = "", sender: str = "writer", **changes: Any) -> Event:
    values = {
        "action": "requested_action" if identifier else "rerequested",
        "repository": NAME,
        "sender": sender,
        "sender_type": "User",
        "check": 11,
        "name": "tipcflow",
        "app": "tipcflow",
        "head_sha": HEAD,
        "external_id": "2/1",
        "identifier": identifier,
    }
    return CheckRunEvent.model_validate({**values, **changes}, by_alias=False, by_name=True)


def push(**changes: Any) -> Event:
    values = {"repository": NAME, "ref": "refs/heads/main", "before": BASE, "after": HEAD}
    return PushEvent.model_validate({**values, **changes}, by_alias=False, by_name=True)


def group(**changes: Any) -> Event:
    values = {
        "action": "checks_requested",
        "repository": NAME,
        "head_sha": HEAD,
        "head_ref": "refs/heads/gh-readonly-queue/main/pr-2",
        "base_ref": "refs/heads/main",
        "base_sha": BASE,
    }
    return MergeGroupEvent.model_validate({**values, **changes}, by_alias=False, by_name=True)


def last(event: Event, repository: Repository, known: Known = KNOWN) -> Decision:
    return decide(event, repository, known)[-1]


def with_(known: Known, **changes: Any) -> Known:
    return Known(**{**vars(known), **changes})


def test_an_opened_pull_request_starts_one_run(repository: Repository) -> None:
    (one,) = decide(pull(), repository, KNOWN)
    assert (one.do, one.why, one.key) == (Do.START, Why.CHANGE, RunKey(NAME, 2, HEAD, 1))
    assert one.key is not None
    again = last(pull(), repository, with_(KNOWN, previous=(Previous(HEAD, 1, "head"),)))
    assert again.key == one.key
    assert again.key.run_id == one.key.run_id


def test_a_push_cancels_older_runs_first(repository: Repository) -> None:
    cancel, start = decide(pull(action="synchronize"), repository, KNOWN)
    assert (cancel.do, cancel.cancel_before, cancel.number) == (Do.CANCEL, HEAD, 2)
    assert start.do is Do.START


def test_a_late_event_of_an_older_commit_starts_nothing(repository: Repository) -> None:
    found = decide(pull(action="synchronize", head_sha=OLD), repository, KNOWN)
    assert [(one.do, one.why) for one in found] == [(Do.IGNORE, Why.NEWER)]


@pytest.mark.parametrize(
    ("event", "do", "why"),
    [
        (pull(action="closed"), Do.IGNORE, Why.NEWER),  # late: GitHub shows it as open again
        (pull(base_ref="other"), Do.REPORT, Why.BRANCH),
        (pull(action="ready_for_review"), Do.START, Why.CHANGE),
        (pull(action="unlabeled", label="tipc:skip"), Do.START, Why.CHANGE),
        (pull(action="unlabeled", label="tipc"), Do.IGNORE, Why.LABEL),
        (pull(action="edited"), Do.IGNORE, Why.NOT_OURS),
        (pull(action="edited", old_base="dev"), Do.START, Why.CHANGE),
        (pull(draft=True), Do.REPORT, Why.DRAFT),
        (pull(draft=True, labels=["tipc"]), Do.START, Why.CHANGE),
        (pull(labels=["tipc:skip"]), Do.REPORT, Why.SKIP_LABEL),
        (pull(action="labeled", label="bug"), Do.IGNORE, Why.LABEL),
        (pull(action="labeled", label="tipc:all", labels=["tipc:all"]), Do.START, Why.CHANGE),
        (push(), Do.IGNORE, Why.BRANCH),
        (group(), Do.START, Why.MERGE_GROUP),
        (group(action="destroyed"), Do.IGNORE, Why.MERGE_GROUP),
        (group(base_ref="refs/heads/other"), Do.REPORT, Why.BRANCH),
    ],
)
def test_every_event_has_a_decision(event: Event, do: Do, why: Why, repository: Repository) -> None:
    found = last(event, repository)
    assert (found.do, found.why) == (do, why)
    if do is Do.REPORT:
        assert found.key is not None, "a required check must exist"


def test_a_closed_pull_request_is_cancelled(repository: Repository) -> None:
    for known in (with_(KNOWN, open=False), Known()):
        found = last(pull(action="closed"), repository, known)
        assert (found.do, found.why) == (Do.CANCEL, Why.CLOSED)


def test_skip_label_cancels_running_runs(repository: Repository) -> None:
    event = pull(action="labeled", label="tipc:skip", labels=["tipc:skip"])
    cancel, report = decide(event, repository, with_(KNOWN, previous=(Previous(HEAD, 1, "head"),)))
    assert (cancel.do, cancel.number, cancel.cancel_before) == (Do.CANCEL, 2, None)
    assert report.do is Do.REPORT


@pytest.mark.parametrize("action", ["synchronize", "opened"])
def test_cancelled_commit_runs_again_as_the_head(action: str, repository: Repository) -> None:
    known = with_(KNOWN, previous=(Previous(HEAD, 1, "head", cancelled=True),), delivery="d9")
    start = last(pull(action=action), repository, known)
    assert (start.do, start.request, start.key) == (Do.START, "delivery:d9", RunKey(NAME, 2, HEAD, 2))


def test_new_base_needs_a_separate_run(repository: Repository) -> None:
    known = with_(KNOWN, previous=(Previous(HEAD, 1, "head"),), delivery="d9")
    event = pull(action="edited", old_base="dev")
    cancel, start = decide(event, repository, known)
    assert (cancel.do, cancel.number, cancel.cancel_before) == (Do.CANCEL, 2, None)
    assert cancel.reason == "the base branch is now main"
    assert (start.do, start.key) == (Do.START, RunKey(NAME, 2, HEAD, 2))
    stored = with_(known, previous=(*known.previous, Previous(HEAD, 2, start.request)))
    (again,) = decide(event, repository, stored)
    assert again.key == start.key, "a repeated delivery does not cancel its run"


def test_new_base_that_is_not_certified_cancels(repository: Repository) -> None:
    event = pull(action="edited", old_base="main", base_ref="other")
    cancel, report = decide(event, repository, with_(KNOWN, previous=(Previous(HEAD, 1, "head"),), delivery="d9"))
    assert (cancel.do, report.do, report.why) == (Do.CANCEL, Do.REPORT, Why.BRANCH)


def test_followed_pushes_start(repository: Repository) -> None:
    follows = repository.model_copy(update={"pushes": ("main",)})
    assert last(push(), follows).key == RunKey(NAME, 0, HEAD, 1)
    for event in (push(deleted=True, after="0" * 40), push(ref="refs/tags/main"), push(ref="refs/heads/x")):
        assert last(event, follows).do is Do.IGNORE


def test_initial_labels_do_not_start_a_second_run(repository: Repository) -> None:
    """GitHub sends `opened` with all labels, then `labeled` for each."""
    before = with_(KNOWN, previous=(Previous(HEAD, 1, "head", ("tipc:all",)),))
    event = pull(action="labeled", label="tipc:all", labels=["tipc:all"])
    assert last(event, repository, before).do is Do.IGNORE
    later = with_(KNOWN, previous=(Previous(HEAD, 1, "head"),))
    assert last(event, repository, later).key == RunKey(NAME, 2, HEAD, 2)


def test_a_reopened_pull_request_is_a_new_attempt_per_delivery(repository: Repository) -> None:
    before = with_(KNOWN, previous=(Previous(HEAD, 1, "head"),), delivery="d2")
    assert last(pull(action="reopened"), repository, before).key == RunKey(NAME, 2, HEAD, 2)
    repeated = with_(before, previous=(*before.previous, Previous(HEAD, 2, "delivery:d2")))
    assert last(pull(action="reopened"), repository, repeated).key == RunKey(NAME, 2, HEAD, 2)


def test_a_fork_waits_for_the_approval_of_this_commit(repository: Repository) -> None:
    event = pull(head_repository="evil/fork")
    waits = last(event, repository, with_(FORK, permission="read"))
    assert (waits.do, waits.why) == (Do.WAIT, Why.FORK)
    assert f"/tipc approve {HEAD}" in waits.reason
    assert last(event, repository, with_(FORK, approved=frozenset({OLD}))).do is Do.WAIT
    assert last(event, repository, with_(FORK, approved=frozenset({HEAD}))).do is Do.START
    deleted = pull(head_repository="")
    assert last(deleted, repository, FORK).do is Do.WAIT
    never = repository.model_copy(update={"forks": "never"})
    found = last(event, never, with_(FORK, approved=frozenset({HEAD})))
    assert (found.do, found.why) == (Do.REPORT, Why.FORKS_OFF)


def test_an_approval_needs_write_permission_and_the_head(repository: Repository) -> None:
    command = comment(f"/tipc approve {HEAD}", "writer")
    (start,) = decide(command, repository, FORK)
    assert (start.do, start.why, start.approve, start.key) == (
        Do.START,
        Why.APPROVAL,
        HEAD,
        RunKey(NAME, 2, HEAD, 1),
    )
    for permission in ("", "none", "read", "triage", "nonsense"):
        refused = last(command, repository, with_(FORK, permission=permission))
        assert (refused.do, refused.why, refused.reaction) == (Do.IGNORE, Why.NOT_ALLOWED, "-1")
    own = last(comment(f"/tipc approve {HEAD}"), repository, with_(FORK, permission="read"))
    assert own.why is Why.NOT_ALLOWED, "the author of a fork cannot approve"
    other = last(comment(f"/tipc approve {OLD}", "writer"), repository, FORK)
    assert (other.do, other.why, other.approve) == (Do.IGNORE, Why.OTHER_COMMIT, "")
    pushed = last(command, repository, with_(FORK, head_sha=OLD))
    assert pushed.do is Do.IGNORE, "the head moved after the comment was written"


def test_a_run_command_does_not_approve_a_fork(repository: Repository) -> None:
    for body in ("/tipc run", "/tipc rerun failed", "/re-run all-failed"):
        found = last(comment(body, "writer"), repository, FORK)
        assert (found.do, found.why, found.approve) == (Do.WAIT, Why.FORK, "")


def test_named_approvers_and_higher_permissions_are_accepted(repository: Repository) -> None:
    strict = repository.model_copy(update={"approvers": Approvers(permission="admin", users=("Friend",))})
    command = f"/tipc approve {HEAD}"
    assert last(comment(command, "writer"), strict, FORK).why is Why.NOT_ALLOWED
    assert last(comment(command, "friend"), strict, with_(FORK, permission="read")).do is Do.START


@pytest.mark.parametrize("body", ["/tipc run", "/tipc rerun", "/tipc rerun failed", "/tipc cancel"])
def test_the_author_may_run_and_cancel(body: str, repository: Repository) -> None:
    assert last(comment(body), repository).do in (Do.START, Do.CANCEL)
    assert last(comment(body, "stranger"), repository).why is Why.NOT_ALLOWED
    assert last(comment(body, "writer"), repository, with_(KNOWN, permission="write")).reaction in ("+1", "eyes")


@pytest.mark.parametrize("body", ["/tipc run whole", "/tipc accept ips because new data"])
def test_only_write_permission_may_spend_or_accept(body: str, repository: Repository) -> None:
    assert last(comment(body), repository).why is Why.NOT_ALLOWED
    assert last(comment(body, "writer"), repository, with_(KNOWN, permission="write")).do in (Do.START, Do.ACCEPT)


def test_commands_carry_their_arguments(repository: Repository) -> None:
    writer = with_(KNOWN, permission="write")
    whole = last(comment("/tipc run whole a/b/c", "writer"), repository, writer)
    assert (whole.chains, whole.whole) == (("a/b/c",), True)
    assert last(comment("/re-run all-failed"), repository).failed
    accepted = last(comment("/tipc accept ips because x y", "writer"), repository, writer).accept
    assert accepted is not None
    assert (accepted.metric, accepted.because) == ("ips", "x y")


def test_a_repeated_comment_is_one_attempt(repository: Repository) -> None:
    before = with_(KNOWN, previous=(Previous(HEAD, 1, "head"),))
    first = last(comment("/tipc rerun"), repository, before)
    assert first.key == RunKey(NAME, 2, HEAD, 2)
    stored = with_(KNOWN, previous=(*before.previous, Previous(HEAD, 2, first.request)))
    assert last(comment("/tipc rerun"), repository, stored).key == first.key
    assert last(comment("/tipc rerun", comment=8), repository, stored).key == RunKey(NAME, 2, HEAD, 3)


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (comment("/tipc run", "tipcflow[bot]", sender_type="Bot"), Why.BOT),
        (comment("/tipc run", "dependabot[bot]"), Why.BOT),
        (comment("/tipc run", "ci", sender_type="Bot"), Why.BOT),
        (comment("LGTM"), Why.NOT_A_COMMAND),
        (comment("/tipc run", pull_request=""), Why.NOT_A_COMMAND),
    ],
)
def test_comments_that_are_ignored_silently(event: Event, why: Why, repository: Repository) -> None:
    found = last(event, repository)
    assert (found.do, found.why, found.reply, found.reaction) == (Do.IGNORE, why, "", "")


def test_a_wrong_command_gets_a_reply(repository: Repository) -> None:
    found = last(comment("/tipc runn"), repository)
    assert (found.do, found.why, found.reaction) == (Do.IGNORE, Why.WRONG_COMMAND, "-1")
    assert "`/tipc run [whole] [CHAIN…]`" in found.reply
    assert "/tipc approve" in last(comment("/tipc help"), repository).reply


def test_buttons_start_and_repeat_attempts(repository: Repository) -> None:
    writer = with_(KNOWN, permission="write", previous=(Previous(HEAD, 1, "head"),))
    for event in (pressed(), pressed("rerun")):
        assert last(event, repository, writer).key == RunKey(NAME, 2, HEAD, 2)
    assert last(pressed("approve"), repository, FORK).approve == HEAD
    for event in (pressed(app="other"), pressed(name="lint"), pressed(external_id="x"), pressed("else")):
        assert last(event, repository, writer).why is Why.NOT_OURS
    assert last(pressed(), repository).why is Why.NOT_ALLOWED
    assert last(pressed(head_sha=OLD), repository, writer).why is Why.OTHER_COMMIT
    assert last(pressed(), repository, FORK).do is Do.WAIT
    assert last(pressed("approve", head_sha=OLD), repository, FORK).approve == ""
    assert last(pressed(external_id="0/1"), repository, Known(permission="write")).key == RunKey(NAME, 0, HEAD, 1)


def test_missing_facts_never_start(repository: Repository) -> None:
    nothing = Known()
    for event in (comment("/tipc run"), comment(f"/tipc approve {HEAD}", "writer"), pressed(), pressed("approve")):
        assert last(event, repository, nothing).do is Do.IGNORE
    assert last(pull(), repository, with_(KNOWN, open=False)).do is Do.IGNORE


@pytest.mark.slow
def test_no_combination_starts_unapproved_code_of_a_fork(repository: Repository) -> None:
    """Random events and facts: a started run of a fork has an approval of its commit by an allowed user."""
    chance = random.Random(5)
    bodies = [
        "/tipc run",
        "/tipc rerun failed",
        f"/tipc approve {HEAD}",
        f"/tipc approve {OLD}",
        "/re-run all-failed",
    ]
    for _ in range(4000):
        sender = chance.choice(["author", "writer", "x[bot]"])
        event = chance.choice(
            [
                pull(
                    action=chance.choice(["opened", "synchronize", "reopened", "labeled"]),
                    head_repository=chance.choice(["evil/fork", ""]),
                    label=chance.choice(["tipc", "tipc:all"]),
                    labels=chance.choice([[], ["tipc", "tipc:all"]]),
                    head_sha=chance.choice([HEAD, OLD]),
                ),
                comment(chance.choice(bodies), sender),
                pressed(chance.choice(["", "rerun", "approve"]), sender, head_sha=chance.choice([HEAD, OLD])),
            ]
        )
        known = with_(
            FORK,
            permission=chance.choice(["", "read", "triage", "write", "admin"]),
            approved=chance.choice([frozenset(), frozenset({OLD}), frozenset({HEAD})]),
            head_sha=chance.choice([HEAD, OLD, ""]),
        )
        for one in decide(event, repository, known):
            if one.do is Do.START:
                assert one.key is not None
                may = repository.approvers.allow(sender, known.permission)
                assert one.key.head_sha in known.approved or (one.approve == one.key.head_sha and may)


def test_the_id_of_a_check_run_is_read() -> None:
    assert str(RunKey(NAME, 12, HEAD, 3).external_id) == "12/3"
    assert ExternalId.parse_or_none("12/3") == ExternalId(12, 3)
    foreign = ("", "12", "a/1", "1/", "-1/2", "9" * 12 + "/1")
    assert [ExternalId.parse_or_none(text) for text in foreign] == [None] * 6
