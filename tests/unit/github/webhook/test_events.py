"""Every example payload of GitHub is read, or known to be unused."""

import json
from typing import Any

import pytest

from tipcflow.github.webhook import (
    CheckRunEvent,
    CheckSuiteEvent,
    CommentEvent,
    InstallationEvent,
    MergeGroupEvent,
    PullRequestEvent,
    PushEvent,
    event_of,
    stored_event,
)
from tipcflow.github.webhook.events import EVENTS, LONGEST_COMMENT

Payloads = dict[str, list[dict[str, Any]]]
# Payloads of each used event that have a used action.
USED = {
    "pull_request": {
        "opened",
        "synchronize",
        "reopened",
        "ready_for_review",
        "labeled",
        "unlabeled",
        "edited",
        "closed",
    },
    "issue_comment": {"created"},
    "check_run": {"rerequested", "requested_action"},
    "check_suite": {"rerequested"},
    "merge_group": {"checks_requested"},
}


def test_examples_of_github_are_complete(payloads: Payloads) -> None:
    assert (len(payloads), sum(map(len, payloads.values()))) == (58, 329)
    assert set(EVENTS) <= set(payloads)


def test_every_example_is_read_and_stored(payloads: Payloads) -> None:
    read = 0
    for name, examples in payloads.items():
        for payload in examples:
            event = event_of(name, payload)
            wanted = name in EVENTS and payload.get("action") in USED.get(name, {payload.get("action")})
            assert (event is not None) == wanted, (name, payload.get("action"))
            if event is None:
                continue
            read += 1
            stored = json.loads(json.dumps(event.model_dump(mode="json")))
            assert stored_event(name, stored) == event
            assert len(json.dumps(stored)) < 3000
            assert event.sender == payload["sender"]["login"] if "sender" in payload else event.sender == ""
    assert read > 40


def _first(payloads: Payloads, name: str, action: str) -> dict[str, Any]:
    return next(one for one in payloads[name] if one.get("action") == action)


def test_the_fields_of_a_pull_request_are_read(payloads: Payloads) -> None:
    event = event_of("pull_request", _first(payloads, "pull_request", "opened"))
    assert isinstance(event, PullRequestEvent)
    assert (event.repository, event.number, event.author) == ("Codertocat/Hello-World", 2, "Codertocat")
    assert event.head_sha == "ec26c3e57ca3a959ca5aad62de7213c562f8c821"
    assert (event.base_ref, event.base_sha) == ("master", "f95f852bd8fca8fcc58a9a2d6c842781e32a215e")
    assert not event.fork
    assert not event.draft


def test_the_base_before_an_edit_is_read(payloads: Payloads) -> None:
    payload = json.loads(json.dumps(_first(payloads, "pull_request", "opened"))) | {"action": "edited"}
    retitled = event_of("pull_request", payload | {"changes": {"title": {"from": "old"}}})
    rebased = event_of("pull_request", payload | {"changes": {"base": {"ref": {"from": "main"}}}})
    assert isinstance(retitled, PullRequestEvent)
    assert isinstance(rebased, PullRequestEvent)
    assert (retitled.old_base, rebased.old_base) == ("", "main")


def test_a_deleted_or_renamed_fork_is_a_fork(payloads: Payloads) -> None:
    payload = json.loads(json.dumps(_first(payloads, "pull_request", "opened")))
    payload["pull_request"]["head"]["repo"] = None
    payload["pull_request"]["user"] = None
    event = event_of("pull_request", payload)
    assert isinstance(event, PullRequestEvent)
    assert (event.fork, event.head_repository, event.author) == (True, "", "")
    payload["pull_request"]["head"]["repo"] = {"full_name": "other/Hello-World"}
    other = event_of("pull_request", payload)
    assert isinstance(other, PullRequestEvent)
    assert other.fork


def test_push_and_installation_events_are_parsed(payloads: Payloads) -> None:
    push = event_of("push", next(one for one in payloads["push"] if one["ref"].startswith("refs/heads/")))
    assert isinstance(push, PushEvent)
    assert push.branch
    tag = event_of("push", next(one for one in payloads["push"] if one["ref"].startswith("refs/tags/")))
    assert isinstance(tag, PushEvent)
    assert tag.branch == ""
    comment = event_of("issue_comment", _first(payloads, "issue_comment", "created"))
    assert isinstance(comment, CommentEvent)
    assert comment.body.startswith("You are totally right!")
    pressed = event_of("check_run", _first(payloads, "check_run", "requested_action"))
    assert isinstance(pressed, CheckRunEvent)
    assert pressed.identifier == "lgtm|26764"
    payload = json.loads(json.dumps(_first(payloads, "check_suite", "rerequested")))
    payload["check_suite"]["app"]["slug"] = "octocoders"  # older servers do not send the slug
    suite = event_of("check_suite", payload)
    assert isinstance(suite, CheckSuiteEvent)
    assert (suite.head_sha, suite.app) == ("ec26c3e57ca3a959ca5aad62de7213c562f8c821", "octocoders")
    group = event_of("merge_group", _first(payloads, "merge_group", "checks_requested"))
    assert isinstance(group, MergeGroupEvent)
    assert group.branch == "main"
    installed = event_of("installation_repositories", _first(payloads, "installation_repositories", "added"))
    assert isinstance(installed, InstallationEvent)
    assert installed.added


def test_a_long_comment_is_cut(payloads: Payloads) -> None:
    payload = json.loads(json.dumps(_first(payloads, "issue_comment", "created")))
    payload["comment"]["body"] = "x" * 65536
    event = event_of("issue_comment", payload)
    assert isinstance(event, CommentEvent)
    assert len(event.body) == LONGEST_COMMENT


def test_a_top_level_field_cannot_replace_a_nested_one(payloads: Payloads) -> None:
    payload = {**_first(payloads, "pull_request", "opened"), "head_sha": "0" * 40, "number": 99}
    event = event_of("pull_request", payload)
    assert isinstance(event, PullRequestEvent)
    assert event.head_sha.startswith("ec26c3e5")
    assert event.number == 2


def test_a_stored_event_of_a_newer_version_is_an_error() -> None:
    with pytest.raises(KeyError):
        stored_event("deployment", {})
