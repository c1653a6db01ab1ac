"""From (event, repository, known facts) to decisions."""

from fnmatch import fnmatchcase

from tipcflow.config.repository import Repository
from tipcflow.github.commands import HELP, Ab, Accept, Approve, Cancel, Command, Help, Rerun, Run, Wrong, parse
from tipcflow.github.trust.decisions import Decision, Do, ExternalId, Known, RunKey, Why, approved, next_attempt
from tipcflow.github.webhook.events import (
    CheckRunEvent,
    CommentEvent,
    Event,
    MergeGroupEvent,
    PullRequestEvent,
    PushEvent,
)

APPROVE = "approve"
RERUN = "rerun"
_HEAD = "head"


def decide(event: Event, repository: Repository, known: Known) -> tuple[Decision, ...]:
    """What to do after an event, in order.

    Args:
        event: a verified event of this repository.
        known: facts read after the event; a missing fact never starts a run.
    """
    if isinstance(event, PullRequestEvent):
        return _pull_request(event, repository, known)
    if isinstance(event, PushEvent):
        return _push(event, repository, known)
    if isinstance(event, MergeGroupEvent):
        return _merge_group(event, repository, known)
    if isinstance(event, CommentEvent):
        return _comment(event, repository, known)
    if isinstance(event, CheckRunEvent):
        return _check_run(event, repository, known)
    return (_ignore(Why.NOT_OURS, "the event starts nothing"),)


def _ignore(why: Why, reason: str) -> Decision:
    return Decision(Do.IGNORE, why, reason)


def _followed(branch: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(branch, "*" if glob == "**" else glob) for glob in globs)


def _pull_request(event: PullRequestEvent, repository: Repository, known: Known) -> tuple[Decision, ...]:
    number = event.number
    if event.action == "closed":
        if known.head_sha and known.open:  # the delivery is late
            return (_ignore(Why.NEWER, "the pull request is open again"),)
        return (Decision(Do.CANCEL, Why.CLOSED, "the pull request is closed", number=number),)
    if unused := _unused(event, repository, known):
        return (unused,)
    first = _older(event, known)
    request = _request(event, known)
    if not request:
        return (*first, _ignore(Why.LABEL, "a run of this commit with this label exists"))
    key = RunKey(repository.name, number, event.head_sha, _attempt(known, event.head_sha, request))
    if not _followed(event.base_ref, repository.branches):
        return (*first, _report(key, Why.BRANCH, f"base branch {event.base_ref} is not certified"))
    if repository.labels.skip in event.labels:
        return (*first, *_skipped(key, event, repository))
    if event.draft and repository.labels.run not in event.labels:
        reason = f"draft: nothing runs; label {repository.labels.run} or `/tipc run` starts a run"
        return (*first, _report(key, Why.DRAFT, reason))
    held = _held(event.fork, key, repository, known)
    if held:
        return (*first, held)
    start = Decision(
        Do.START, Why.CHANGE, f"pull request {event.action}", key, request, number=number, labels=event.labels
    )
    return (*first, start)


def _unused(event: PullRequestEvent, repository: Repository, known: Known) -> Decision | None:
    """Why an event changes nothing; None if it may start or stop something."""
    if not known.open:
        return _ignore(Why.CLOSED, "the pull request is closed")
    if known.head_sha and known.head_sha != event.head_sha:
        return _ignore(Why.NEWER, f"{event.head_sha[:8]} is no longer the head")
    if event.action == "labeled" and event.label not in _labels(repository):
        return _ignore(Why.LABEL, "the label starts nothing")
    if event.action == "unlabeled" and event.label != repository.labels.skip:
        return _ignore(Why.LABEL, "the removed label stopped nothing")
    if event.action == "edited" and not event.old_base:
        return _ignore(Why.NOT_OURS, "the base branch is the same")
    return None


def _older(event: PullRequestEvent, known: Known) -> tuple[Decision, ...]:
    """What ends the runs that a push or a new base branch replaces."""
    if event.action == "synchronize":
        reason = f"{event.head_sha[:8]} is newer"
        return (Decision(Do.CANCEL, Why.NEWER, reason, number=event.number, cancel_before=event.head_sha),)
    # A delivery that is handled again must not cancel its own run.
    is_handled = any(attempt.request == _request(event, known) for attempt in known.previous)
    if event.action != "edited" or is_handled:
        return ()
    reason = f"the base branch is now {event.base_ref}"
    return (Decision(Do.CANCEL, Why.NEWER, reason, number=event.number),)


def _skipped(key: RunKey, event: PullRequestEvent, repository: Repository) -> tuple[Decision, ...]:
    """The label that stops everything: also what runs already, when it is set."""
    reason = f"label {repository.labels.skip}: nothing runs"
    report = _report(key, Why.SKIP_LABEL, reason)
    if event.action != "labeled" or event.label != repository.labels.skip:
        return (report,)
    return Decision(Do.CANCEL, Why.SKIP_LABEL, f"label {repository.labels.skip}", number=event.number), report


def _request(event: PullRequestEvent, known: Known) -> str:
    """The id of the request; '' if an earlier attempt covers it.

    GitHub sends `opened` and then one `labeled` for each initial label.
    """
    attempts = [attempt for attempt in known.previous if attempt.head_sha == event.head_sha]
    if event.action == "labeled":
        seen = any(
            event.label in attempt.labels and attempt.request != f"label:{event.label}" for attempt in attempts
        )
        return "" if seen else f"label:{event.label}"
    # A commit that was pushed again after its run was cancelled, and a new base, need runs of their own.
    cancelled = bool(attempts) and attempts[-1].cancelled
    again = cancelled or event.action in ("reopened", "edited", "unlabeled")
    return f"delivery:{known.delivery}" if again else _HEAD


def _labels(repository: Repository) -> set[str]:
    labels = repository.labels
    return {labels.run, labels.skip, labels.every, *labels.chains}


def _attempt(known: Known, head_sha: str, request: str) -> int:
    return next_attempt(known.previous, head_sha, request)


def _report(key: RunKey, why: Why, reason: str) -> Decision:
    return Decision(Do.REPORT, why, reason, key, number=key.number)


def _held(fork: bool, key: RunKey, repository: Repository, known: Known) -> Decision | None:
    """Why the code of a fork does not run; None if it may run."""
    if not fork or (repository.forks == "approve" and approved(known, key.head_sha)):
        return None
    if repository.forks == "never":
        return _report(key, Why.FORKS_OFF, "code of forks does not run in this repository")
    who = f"a user with {repository.approvers.permission} permission"
    reason = f"code of a fork: {who} must comment `/tipc approve {key.head_sha}`"
    return Decision(Do.WAIT, Why.FORK, reason, key, number=key.number)


def _push(event: PushEvent, repository: Repository, known: Known) -> tuple[Decision, ...]:
    if event.deleted or not event.branch or not set(event.after) - {"0"}:
        return (_ignore(Why.BRANCH, "not a commit of a branch"),)
    if not _followed(event.branch, repository.pushes):
        return (_ignore(Why.BRANCH, f"branch {event.branch} is not followed"),)
    key = RunKey(repository.name, 0, event.after, 1)
    return (Decision(Do.START, Why.PUSH, f"push to {event.branch}", key, f"push:{event.branch}"),)


def _merge_group(event: MergeGroupEvent, repository: Repository, known: Known) -> tuple[Decision, ...]:
    """A group is never cancelled by a newer one; a destroyed group is left to end, because another may need it."""
    if event.action != "checks_requested":
        return (_ignore(Why.MERGE_GROUP, "the merge group does not exist any more"),)
    key = RunKey(repository.name, 0, event.head_sha, 1)
    if not _followed(event.branch, repository.branches):
        return (_report(key, Why.BRANCH, f"branch {event.branch} is not certified"),)
    return (Decision(Do.START, Why.MERGE_GROUP, f"merge group for {event.branch}", key, _HEAD),)


def _comment(event: CommentEvent, repository: Repository, known: Known) -> tuple[Decision, ...]:
    if event.by_bot or event.sender.lower() == repository.bot.lower():
        return (_ignore(Why.BOT, "comment by a bot"),)
    command = parse(event.body)
    if command is None or not event.pull_request:
        return (_ignore(Why.NOT_A_COMMAND, "not a command for a pull request"),)
    if isinstance(command, Wrong):
        return (_ignore(Why.WRONG_COMMAND, command.reply).with_reply("-1", command.reply),)
    if isinstance(command, Help):
        return (Decision(Do.HELP, Why.COMMAND, "help", number=event.number, reply=HELP, reaction="+1"),)
    return _command(command, event, repository, known)


def _command(command: Command, event: CommentEvent, repository: Repository, known: Known) -> tuple[Decision, ...]:
    refused = _refused(command, event, repository, known)
    if refused:
        return (refused,)
    if isinstance(command, Cancel):
        reason = f"cancelled by {event.sender}"
        return (Decision(Do.CANCEL, Why.COMMAND, reason, number=event.number, reaction="+1"),)
    if isinstance(command, Accept):
        reason = f"{event.sender} accepts {command.metric}"
        return (Decision(Do.ACCEPT, Why.COMMAND, reason, number=event.number, accept=command, reaction="+1"),)
    request = f"comment:{event.comment}"
    if isinstance(command, Approve):
        return _approval(command.sha, request, event.sender, event.number, repository, known)
    key = RunKey(repository.name, event.number, known.head_sha, _attempt(known, known.head_sha, request))
    held = _held(known.fork(repository.name), key, repository, known)
    if held:
        return (held.with_reply("-1", held.reason),)
    if isinstance(command, Ab):
        reason = f"comparison requested by {event.sender}"
        return (_comparison(command, key, reason, known),)
    return (_start(command, key, request, event.sender, known),)


def _comparison(command: Ab, key: RunKey, reason: str, known: Known) -> Decision:
    return Decision(
        Do.COMPARE,
        Why.COMMAND,
        reason,
        key,
        number=key.number,
        compare=command,
        base=known.base_ref,
        reaction="eyes",
    )


def _start(command: Command, key: RunKey, request: str, sender: str, known: Known) -> Decision:
    wanted = command if isinstance(command, Run | Rerun) else Run()
    return Decision(
        Do.START,
        Why.COMMAND,
        f"requested by {sender}",
        key,
        request,
        chains=wanted.chains,
        whole=isinstance(wanted, Run) and wanted.whole,
        failed=isinstance(wanted, Rerun) and wanted.failed,
        number=key.number,
        reaction="eyes",
        labels=known.labels,
    )


def _refused(command: Command, event: CommentEvent, repository: Repository, known: Known) -> Decision | None:
    """Why the sender may not do that; the author may run, rerun and cancel, but neither approve nor accept."""
    trusted = repository.approvers.allow(event.sender, known.permission)
    author = bool(event.sender) and event.sender.lower() == known.author.lower()
    own = author and not isinstance(command, Approve | Accept) and not (isinstance(command, Run) and command.whole)
    if not trusted and not own:
        reason = f"this command requires {repository.approvers.permission} permission"
        return _ignore(Why.NOT_ALLOWED, reason).with_reply("-1", reason)
    if not known.head_sha or not known.open:
        why, reason = (
            (Why.CLOSED, "the pull request is closed") if not known.open else (Why.UNKNOWN_STATE, _UNKNOWN)
        )
        return _ignore(why, reason).with_reply("-1", reason)
    if not isinstance(command, Cancel) and not _followed(known.base_ref, repository.branches):
        reason = f"base branch {known.base_ref} is not certified"
        return _ignore(Why.BRANCH, reason).with_reply("-1", reason)
    return None


_UNKNOWN = "the head of the pull request is unknown; try again later"


def _approval(
    sha: str, request: str, sender: str, number: int, repository: Repository, known: Known
) -> tuple[Decision, ...]:
    """Start the approved commit. The approval counts for the current head only."""
    if sha != known.head_sha:
        reason = f"{sha[:8]} is not the head; the head is {known.head_sha}"
        return (_ignore(Why.OTHER_COMMIT, reason).with_reply("-1", reason),)
    key = RunKey(repository.name, number, sha, _attempt(known, sha, request))
    if repository.forks == "never" and known.fork(repository.name):
        held = _report(key, Why.FORKS_OFF, "code of forks does not run in this repository")
        return (held.with_reply("-1", held.reason),)
    reason = f"{sha[:8]} approved by {sender}"
    return (
        Decision(
            Do.START,
            Why.APPROVAL,
            reason,
            key,
            request,
            number=number,
            approve=sha,
            reaction="+1",
            labels=known.labels,
        ),
    )


def _check_run(event: CheckRunEvent, repository: Repository, known: Known) -> tuple[Decision, ...]:
    if event.by_bot or event.app.lower() != repository.app_slug.lower() or event.name != repository.check:
        return (_ignore(Why.NOT_OURS, "not a check run of this App"),)
    if not repository.approvers.allow(event.sender, known.permission):
        return (_ignore(Why.NOT_ALLOWED, f"requires {repository.approvers.permission} permission"),)
    known_id = ExternalId.parse_or_none(event.external_id)
    if known_id is None:
        return (_ignore(Why.NOT_OURS, "the check run has no run of tipcflow"),)
    number = known_id.number
    if number and (not known.head_sha or not known.open):
        return (_ignore(Why.UNKNOWN_STATE, _UNKNOWN),)
    if number and event.head_sha != known.head_sha:
        return (_ignore(Why.OTHER_COMMIT, f"{event.head_sha[:8]} is no longer the head"),)
    # Several presses of a button of one attempt are one request.
    request = f"check:{event.check}:{event.external_id}:{event.identifier or RERUN}"
    if event.action == "requested_action" and event.identifier == APPROVE:
        return _approval(event.head_sha, request, event.sender, number, repository, known)
    if event.action == "requested_action" and event.identifier != RERUN:
        return (_ignore(Why.NOT_OURS, "unknown button"),)
    key = RunKey(repository.name, number, event.head_sha, _attempt(known, event.head_sha, request))
    held = _held(bool(number) and known.fork(repository.name), key, repository, known)
    if held:
        return (held,)
    start = Decision(Do.START, Why.BUTTON, f"requested by {event.sender}", key, request, number=number)
    return (start,)
