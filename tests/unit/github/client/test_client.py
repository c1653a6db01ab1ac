"""The client against a stand-in over HTTP: errors, rate limits and lost responses double and lose nothing."""

from collections.abc import Iterator

import pytest
from tests.support.github.api import GitHub, serving

from tipcflow.config.repository import Repository
from tipcflow.domain import ConfigError, InfraError
from tipcflow.github.client import Client
from tipcflow.github.client.connect import api
from tipcflow.github.report import Annotation, CheckRun, Conclusion

pytestmark = pytest.mark.slow

HEAD = "a" * 40


@pytest.fixture
def github() -> GitHub:
    return GitHub()


@pytest.fixture
def client(github: GitHub) -> Iterator[Client]:
    repository = Repository(name="o/r", connection="app", suite="toy", cluster="two")
    with serving(github) as url:
        yield Client(api(url, None, between_writes_s=0), repository)


def check(
    annotations: int = 0, *, attempt: int = 1, conclusion: Conclusion | None = Conclusion.FAILURE
) -> CheckRun:
    many = tuple(Annotation("f.txt", number + 1, "failure", "t", f"m{number}") for number in range(annotations))
    status = "completed" if conclusion else "queued"
    return CheckRun("tipcflow", HEAD, f"2/{attempt}", status, conclusion, "title", "summary", many, (), "")  # type: ignore[arg-type]


def test_a_check_run_is_created_once_and_updated(client: Client, github: GitHub) -> None:
    first = client.publish(check(conclusion=None))
    assert client.publish(check()) == first
    assert client.publish(check(attempt=2)) != first
    assert [one["external_id"] for one in github.checks] == ["2/1", "2/2"]
    assert github.checks[0]["conclusion"] == "failure"


def test_annotations_are_sent_in_batches_and_never_twice(client: Client, github: GitHub) -> None:
    client.publish(check(120))
    client.publish(check(120))
    assert [one["message"] for one in github.checks[0]["annotations"]] == [f"m{number}" for number in range(120)]


def test_a_lost_response_of_a_creation_doubles_nothing(client: Client, github: GitHub) -> None:
    """The check run exists, but the response was lost: the call fails, the next one finds it."""
    github.faults = [("POST", 502, {}, True)]
    with pytest.raises(InfraError) as caught:
        client.publish(check(60))
    assert caught.value.passing
    client.publish(check(60))
    assert len(github.checks) == 1
    assert len(github.checks[0]["annotations"]) == 60


def test_a_lost_response_between_batches_doubles_nothing(client: Client, github: GitHub) -> None:
    client.publish(check(conclusion=None))
    github.faults = [("PATCH", 500, {}, True)]
    with pytest.raises(InfraError):
        client.publish(check(120))
    client.publish(check(120))
    assert [one["message"] for one in github.checks[0]["annotations"]] == [f"m{number}" for number in range(120)]


def test_a_server_error_of_a_read_is_retried(client: Client, github: GitHub) -> None:
    github.roles = {"me": "maintain"}
    github.faults = [("GET", 502, {}, False), ("GET", 503, {}, False)]
    assert client.permission("me") == "maintain"
    assert len(github.log) == 3


def test_a_secondary_rate_limit_is_waited_for(client: Client, github: GitHub) -> None:
    github.roles = {"me": "write"}
    github.faults = [("GET", 403, {"Retry-After": "1"}, False)]
    assert client.permission("me") == "write"
    github.faults = [("POST", 403, {"Retry-After": "1"}, False)]
    with pytest.raises(InfraError) as caught:
        client.react(1, "eyes")
    assert caught.value.passing


def test_an_unchanged_response_costs_nothing(client: Client, github: GitHub) -> None:
    github.roles = {"me": "write"}
    assert [client.permission("me") for _ in range(3)] == ["write"] * 3
    assert github.not_modified == 2
    github.roles["me"] = "read"
    assert client.permission("me") == "read"


def test_custom_role_counts_as_its_base_role(client: Client, github: GitHub) -> None:
    github.roles = {"keeper": "write"}
    assert client.permission("keeper") == "write"
    github.role_names = {"keeper": "release-manager"}
    assert client.permission("keeper") == "write"


def test_an_unknown_user_is_refused(client: Client) -> None:
    with pytest.raises(ConfigError, match="404"):
        client.permission("stranger")


def test_an_unreachable_github_is_temporary() -> None:
    repository = Repository(name="o/r", connection="app", suite="toy", cluster="two")
    from github import Github

    away = Client(Github(base_url="http://127.0.0.1:9/api/v3", retry=None, timeout=1), repository)
    with pytest.raises(InfraError) as caught:
        away.permission("me")
    assert caught.value.passing


def test_comment_is_edited_in_place(client: Client, github: GitHub) -> None:
    marker = "<!-- tipcflow:tipcflow -->"
    github.comments = [{"id": 1, "user": {"login": "mallory"}, "body": f"{marker} forged"}]
    first = client.comment(2, marker, f"{marker}\nfailed")
    assert client.comment(2, marker, f"{marker}\npass") == first
    assert client.comment(2, marker, f"{marker}\npass") == first
    assert [one["body"] for one in github.comments] == [f"{marker} forged", f"{marker}\npass"]
    assert [verb for verb, _, _ in github.log if verb != "GET"] == ["POST", "PATCH"]


def test_the_own_comment_is_found_on_a_later_page(client: Client, github: GitHub) -> None:
    github.comments = [{"id": number + 1, "user": {"login": "x"}, "body": ""} for number in range(150)]
    github.comments.append({"id": 151, "user": {"login": "tipcflow[bot]"}, "body": "<!-- m -->"})
    assert client.comment(2, "<!-- m -->", "<!-- m -->\nx") == 151


def test_a_pull_request_and_its_files_are_read(client: Client, github: GitHub) -> None:
    github.pull = {
        "state": "open",
        "head": {"sha": HEAD, "repo": None},
        "base": {"ref": "main"},
        "user": None,
        "labels": [{"name": "tipc"}],
        "changed_files": 151,
    }
    pull = client.pull(2)
    assert (pull.head_repository, pull.author, pull.open, pull.labels) == ("", "", True, ("tipc",))
    github.files = [{"filename": f"f{number}"} for number in range(150)]
    github.files.append({"filename": "new", "previous_filename": "old"})
    paths, complete = client.changed_paths(2, pull.changed_files)
    assert (len(paths), complete) == (152, True)
    assert not client.changed_paths(2, 160)[1]
