"""The events that are used, reduced to the fields that are used. Unknown fields are ignored: GitHub adds fields.

A payload is read by the paths of GitHub's schema (`event_of`), a stored event by the names of the fields here
(`stored_event`).
"""

from typing import Annotated, Any, ClassVar

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field

# A comment may have 65536 characters; a command is its first line.
LONGEST_COMMENT = 4096

Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
Sha = Annotated[str, Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")]


def _at(first: str, *path: str, **options: Any) -> Any:
    return Field(validation_alias=AliasPath(first, *path), **options)


class Event(BaseModel):
    """Fields of every event.

    Attributes:
        ACTIONS: the actions that are used; empty if the event has no actions or all are used.
        repository: `owner/name`; '' for events of an App or organization.
        sender: login of the user who caused the event; `sender_type` is `User`, `Bot` or `Organization`.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")
    ACTIONS: ClassVar[frozenset[str]] = frozenset()

    action: Text = ""
    repository: Text = _at("repository", "full_name", default="")
    sender: Text = _at("sender", "login", default="")
    sender_type: Text = _at("sender", "type", default="")

    @property
    def by_bot(self) -> bool:
        """Whether a program caused the event."""
        return self.sender_type == "Bot" or self.sender.endswith("[bot]")


def _names(labels: Any) -> Any:
    return tuple(label["name"] if isinstance(label, dict) else label for label in labels or ())


class PullRequestEvent(Event):
    """Event pull_request.

    Attributes:
        head_repository: '' if the fork was deleted.
        labels: the labels after the event; `label` is the added or removed one.
        old_base: the base branch before it was changed; '' if it is the same.
    """

    ACTIONS: ClassVar[frozenset[str]] = frozenset(
        {"opened", "synchronize", "reopened", "ready_for_review", "labeled", "unlabeled", "edited", "closed"}
    )

    number: int = _at("pull_request", "number", ge=1)
    head_sha: Sha = _at("pull_request", "head", "sha")
    head_repository: Text = _at("pull_request", "head", "repo", "full_name", default="")
    base_ref: str = _at("pull_request", "base", "ref")
    base_sha: Sha = _at("pull_request", "base", "sha")
    author: Text = _at("pull_request", "user", "login", default="")
    draft: Annotated[bool, BeforeValidator(bool)] = _at("pull_request", "draft", default=False)
    labels: Annotated[tuple[str, ...], BeforeValidator(_names)] = _at("pull_request", "labels", default=())
    label: Text = _at("label", "name", default="")
    old_base: Text = _at("changes", "base", "ref", "from", default="")

    @property
    def fork(self) -> bool:
        """Whether the head is not in the base repository."""
        return self.head_repository.lower() != self.repository.lower()


class PushEvent(Event):
    """Event push of a branch or tag; `after` is zeros for a deleted ref."""

    ref: str
    before: Sha
    after: Sha
    deleted: bool = False

    @property
    def branch(self) -> str:
        """The branch, '' for a tag."""
        return self.ref.removeprefix("refs/heads/") if self.ref.startswith("refs/heads/") else ""


class CommentEvent(Event):
    """Event issue_comment: GitHub sends it for issues and for pull requests.

    Attributes:
        body: the first `LONGEST_COMMENT` characters.
        pull_request: address of the pull request, '' for an issue.
        author: author of the pull request; the comment's author is `sender`.
    """

    ACTIONS: ClassVar[frozenset[str]] = frozenset({"created"})

    number: int = _at("issue", "number", ge=1)
    pull_request: Text = _at("issue", "pull_request", "url", default="")
    author: Text = _at("issue", "user", "login", default="")
    state: Text = _at("issue", "state", default="")
    comment: int = _at("comment", "id")
    body: Annotated[str, BeforeValidator(lambda value: str(value or "")[:LONGEST_COMMENT])] = _at(
        "comment", "body", default=""
    )


def _numbers(requests: Any) -> Any:
    return tuple(request["number"] if isinstance(request, dict) else request for request in requests or ())


class CheckRunEvent(Event):
    """Event check_run: a user requests another run, or presses a button.

    Attributes:
        identifier: of the button.
        external_id: the id that the report gave the check run.
        app: slug of the App that created the check run.
        numbers: pull requests with this head; empty for forks.
    """

    ACTIONS: ClassVar[frozenset[str]] = frozenset({"rerequested", "requested_action"})

    check: int = _at("check_run", "id")
    name: Text = _at("check_run", "name", default="")
    head_sha: Sha = _at("check_run", "head_sha")
    external_id: Text = _at("check_run", "external_id", default="")
    app: Text = _at("check_run", "app", "slug", default="")
    identifier: Text = _at("requested_action", "identifier", default="")
    numbers: Annotated[tuple[int, ...], BeforeValidator(_numbers)] = _at("check_run", "pull_requests", default=())


class CheckSuiteEvent(Event):
    """Event check_suite: a user requests all check runs of the App for a commit again ("Re-run all checks").

    Attributes:
        app: slug of the App that owns the check suite.
    """

    ACTIONS: ClassVar[frozenset[str]] = frozenset({"rerequested"})

    suite: int = _at("check_suite", "id")
    head_sha: Sha = _at("check_suite", "head_sha")
    app: Text = _at("check_suite", "app", "slug", default="")

    def check_run(self, name: str, external_id: object) -> CheckRunEvent:
        """The same request for the check run with this name and id: the App has only one on a commit."""
        values = self.model_dump() | {"check": self.suite, "name": name, "external_id": str(external_id)}
        return CheckRunEvent.model_validate(values, by_alias=False, by_name=True)


class MergeGroupEvent(Event):
    """Event merge_group: the check belongs to the queue's temporary commit `head_sha`."""

    ACTIONS: ClassVar[frozenset[str]] = frozenset({"checks_requested", "destroyed"})

    head_sha: Sha = _at("merge_group", "head_sha")
    head_ref: str = _at("merge_group", "head_ref")
    base_ref: str = _at("merge_group", "base_ref")
    base_sha: Sha = _at("merge_group", "base_sha")

    @property
    def branch(self) -> str:
        """The branch that the group is merged to."""
        return self.base_ref.removeprefix("refs/heads/")


class PingEvent(Event):
    """Event ping, sent when a webhook is created."""

    hook: int = _at("hook_id", default=0)


def _full_names(repositories: Any) -> Any:
    return tuple(
        repository["full_name"] if isinstance(repository, dict) else repository
        for repository in repositories or ()
    )


class InstallationEvent(Event):
    """Events installation and installation_repositories.

    Attributes:
        account: user or organization that installed the App.
        added, removed: `owner/name` of repositories.
    """

    installation: int = _at("installation", "id")
    account: Text = _at("installation", "account", "login", default="")
    added: Annotated[tuple[str, ...], BeforeValidator(_full_names)] = _at("repositories_added", default=())
    removed: Annotated[tuple[str, ...], BeforeValidator(_full_names)] = _at("repositories_removed", default=())


EVENTS: dict[str, type[Event]] = {
    "pull_request": PullRequestEvent,
    "push": PushEvent,
    "issue_comment": CommentEvent,
    "check_run": CheckRunEvent,
    "check_suite": CheckSuiteEvent,
    "merge_group": MergeGroupEvent,
    "ping": PingEvent,
    "installation": InstallationEvent,
    "installation_repositories": InstallationEvent,
}


def event_of(name: str, payload: Any) -> Event | None:
    """The event of a payload; None if the event or its action is not used.

    Raises:
        pydantic.ValidationError: a field that is used is missing or invalid.
    """
    kind = EVENTS.get(name)
    action = payload.get("action") if isinstance(payload, dict) else None
    if kind is None or (kind.ACTIONS and action not in kind.ACTIONS):
        return None
    return kind.model_validate(payload)


def stored_event(name: str, body: Any) -> Event:
    """The event of an outbox row.

    Raises:
        KeyError: another version of tipcflow stored an event that this one does not know.
        pydantic.ValidationError: the row is invalid.
    """
    return EVENTS[name].model_validate(body, by_alias=False, by_name=True)
