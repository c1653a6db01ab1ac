"""The check run of a commit. One exists for every head: a required check that is missing blocks for ever."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from tipcflow.config.repository import Repository
from tipcflow.domain import Status
from tipcflow.domain.numbers.units import expected_wait
from tipcflow.github.report.facts import ChainFacts, PullFacts, State
from tipcflow.github.report.words import cell, chains_table, findings_table, lists, short, within
from tipcflow.github.trust.decide import APPROVE, RERUN
from tipcflow.github.trust.decisions import Why
from tipcflow.report.text.plain import one_line

# GitHub's limits.
LONGEST_TEXT = 65_535
ANNOTATIONS = 50
_LONGEST_TITLE = 140
_LONGEST_MESSAGE = 4000


class Conclusion(StrEnum):
    """GitHub's conclusions that are used. GitHub counts neutral, skipped and success as passed."""

    SUCCESS = "success"
    SKIPPED = "skipped"
    NEUTRAL = "neutral"
    CANCELLED = "cancelled"
    ACTION_REQUIRED = "action_required"
    FAILURE = "failure"


@dataclass(frozen=True)
class Annotation:
    """A finding on a line of a params file."""

    path: str
    line: int
    level: Literal["notice", "warning", "failure"]
    title: str
    message: str


@dataclass(frozen=True)
class Action:
    """A button: label and identifier have at most 20 characters, the description 40."""

    label: str
    description: str
    identifier: str


@dataclass(frozen=True)
class CheckRun:
    """The content of a check run; `conclusion` is None until it is completed."""

    name: str
    head_sha: str
    external_id: str
    status: Literal["queued", "in_progress", "completed"]
    conclusion: Conclusion | None
    title: str
    summary: str
    annotations: tuple[Annotation, ...]
    actions: tuple[Action, ...]
    details_url: str


def check_run(facts: PullFacts, repository: Repository) -> CheckRun:
    """The check run that these facts give."""
    done = facts.state not in (State.QUEUED, State.RUNNING)
    return CheckRun(
        name=repository.check,
        head_sha=facts.key.head_sha,
        external_id=str(facts.key.external_id),
        status="completed" if done else "in_progress" if facts.state is State.RUNNING else "queued",
        conclusion=conclusion(facts, repository.gate) if done else None,
        title=within_line(_title(facts), _LONGEST_TITLE),
        summary=within(_summary(facts, repository), LONGEST_TEXT),
        annotations=tuple(_annotations(facts.chains)),
        actions=tuple(_actions(facts)),
        details_url=facts.url,
    )


def within_line(text: str, limit: int) -> str:
    """One line within a limit of characters."""
    line = one_line(text)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


# Conclusions that block: nothing proves that the change is good.
_OPEN = frozenset({Status.INFRA_FAILURE, Status.UNCONFIRMED, Status.CONFIG_ERROR})
_GOOD = frozenset({Status.PASS, Status.IMPROVEMENT})
_BAD = frozenset({Status.FAILED, Status.REGRESSION})


def conclusion(facts: PullFacts, gate: Literal["required", "advisory"]) -> Conclusion:
    """The conclusion of a commit on which nothing runs any more.

    A run without a status, no run because of the budget, a skipped run of a required check, and a run of only the
    chains or the mode that a command named are never passed.
    """
    unproven = Conclusion.NEUTRAL if gate == "advisory" else Conclusion.ACTION_REQUIRED
    if facts.state is State.UNCONCERNED or (facts.state is State.SKIPPED and facts.why is Why.BRANCH):
        return Conclusion.SKIPPED
    if facts.state is not State.DONE or not facts.chains:
        return unproven
    statuses = {chain.status for chain in facts.chains}
    if statuses & _BAD:
        return Conclusion.FAILURE
    if facts.partial or None in statuses or statuses & _OPEN or statuses - _GOOD - {Status.CANCELLED}:
        return unproven
    return Conclusion.CANCELLED if Status.CANCELLED in statuses else Conclusion.SUCCESS


def batches(annotations: Sequence[Annotation]) -> list[tuple[Annotation, ...]]:
    """Annotations per request; GitHub appends those of each update."""
    return [tuple(annotations[at : at + ANNOTATIONS]) for at in range(0, len(annotations), ANNOTATIONS)]


def _title(facts: PullFacts) -> str:
    count = len(facts.chains)
    if facts.state is State.HELD:
        return "waiting for approval"
    if facts.state in (State.SKIPPED, State.UNCONCERNED):
        return facts.reason
    if facts.state is State.QUEUED and not count:
        return "selecting chains"
    if facts.state is State.QUEUED:
        place = f", place {facts.place} in the queue" if facts.place else ""
        start = "" if facts.start_s is None else f", starts in about {expected_wait(facts.start_s)}"
        return f"{_chains(count)} queued{place}{start}"
    if facts.state is State.RUNNING:
        ended = sum(chain.status is not None for chain in facts.chains)
        return f"{ended} of {_chains(count)} ended"
    if not count:
        return "no chain ran: nothing is proven"
    dropped = f"; {len(facts.unproven)} dropped by the budget" if facts.unproven else ""
    covered = sum(chain.quarantined for chain in facts.chains)
    quarantined = f"; {covered} with quarantined failures" if covered else ""
    named = "; the affected chains did not run" if facts.partial else ""
    counts = ", ".join(f"{number} {status}" for status, number in _counts(facts.chains))
    return f"{counts}{quarantined}{dropped}{named}"


def _chains(count: int) -> str:
    return f"{count} chain" if count == 1 else f"{count} chains"


def _counts(chains: Sequence[ChainFacts]) -> list[tuple[str, int]]:
    """Numbers of chains per status, the worst first."""
    counts = Counter(chain.status for chain in chains)
    statuses = sorted((status for status in counts if status), key=lambda status: -status.severity)
    missing = [("without a status", counts[None])] if counts[None] else []
    return missing + [(status.value, counts[status]) for status in statuses]


def _summary(facts: PullFacts, repository: Repository) -> str:
    head = f"Commit {short(facts.key.head_sha)}, attempt {facts.key.attempt}."
    parts = [f"{head} {cell(facts.reason)}".rstrip()]
    if facts.partial and facts.chains and facts.state is State.DONE:
        parts.append(
            "Only chains, or a mode, that a command named ran on this commit. The chains that the change affects "
            f"are not proven in mode {cell(facts.mode)}: `/tipc run` runs them."
        )
    if facts.state is State.DONE and not facts.chains:
        parts.append("No chain ran, so nothing is proven.")
    if facts.state is State.DONE and conclusion(facts, repository.gate) is Conclusion.NEUTRAL:
        parts.append("Advisory: GitHub counts this check as passed, although the change is not proven.")
    if facts.chains:
        parts.append(chains_table(facts.chains))
    findings = findings_table(facts.chains)
    if findings:
        parts += ["### Findings", findings]
    parts += lists(facts)
    if facts.problems:
        parts.append("### Selection\n\n" + "\n".join(f"- {cell(problem)}" for problem in facts.problems))
    return "\n\n".join(parts) + "\n"


def _annotations(chains: Sequence[ChainFacts]) -> Iterator[Annotation]:
    levels: dict[bool, Literal["warning", "failure"]] = {True: "failure", False: "warning"}
    for chain in chains:
        for finding in chain.findings:
            if finding.file and finding.line:
                title = within_line(f"{finding.metric}: {finding.status.value}", _LONGEST_TITLE)
                message = within_line(f"{chain.chain} {finding.where}: {finding.reason}", _LONGEST_MESSAGE)
                yield Annotation(finding.file, finding.line, levels[finding.status in _BAD], title, message)


def _actions(facts: PullFacts) -> Iterator[Action]:
    if facts.state is State.HELD:
        yield Action("Approve", "Run the code of this commit", APPROVE)
    if facts.state in (State.DONE, State.SKIPPED) and facts.why not in (Why.FORKS_OFF, Why.BRANCH):
        yield Action("Re-run", "Run the chains of this commit again", RERUN)
