"""The comment on a pull request: a single comment, edited in place, and only if it has content."""

from tipcflow.config.repository import Repository
from tipcflow.domain.numbers.units import counted
from tipcflow.github.commands import FORMS
from tipcflow.github.report.check_run import LONGEST_TEXT, Conclusion, check_run
from tipcflow.github.report.facts import PullFacts, State
from tipcflow.github.report.words import (
    cell,
    chains_table,
    code,
    findings_table,
    folded,
    link,
    lists,
    short,
    within,
)

_HEADS = {
    Conclusion.SUCCESS: "pass",
    Conclusion.SKIPPED: "the change affects no chain",
    Conclusion.NEUTRAL: "not proven (advisory)",
    Conclusion.CANCELLED: "cancelled",
    Conclusion.ACTION_REQUIRED: "not proven",
    Conclusion.FAILURE: "failed",
}


def marker(repository: Repository) -> str:
    """The hidden first line by which the comment is found again."""
    return f"<!-- tipcflow:{repository.check} -->"


def comment(facts: PullFacts, repository: Repository, *, existing: bool = False) -> str:
    """The comment's text, '' for none.

    Args:
        existing: whether there is an earlier comment; it is replaced, so that no old failure stays.
    """
    if not facts.key.number or not _wanted(facts, repository, existing):
        return ""
    check = check_run(facts, repository)
    verdict = _HEADS[check.conclusion] if check.conclusion else check.status.replace("_", " ")
    if facts.state is State.HELD:
        verdict = "waiting for approval"
    title = cell(f"{check.title[:1].upper()}{check.title[1:]}")
    parts = [
        marker(repository),
        f"### {repository.check}: {verdict}",
        f"{title}. Commit {short(facts.key.head_sha)}, attempt {facts.key.attempt}.",
    ]
    if facts.state in (State.HELD, State.SKIPPED):
        parts.append(cell(facts.reason))
    findings = findings_table(facts.chains)
    if findings:
        parts.append(findings)
    if facts.state is State.DONE:
        noted = [chain for chain in facts.chains if not chain.is_plain_pass]
        passed = [chain for chain in facts.chains if chain.is_plain_pass]
        parts += [chains_table(noted)] if noted else []
        # The reader has to see that these ran, too, and why.
        parts += [folded(f"Passed: {counted(len(passed), 'chain')}", chains_table(passed))] if passed else []
    parts += lists(facts)
    parts.append(
        " · ".join(part for part in (link("All results", facts.url) if facts.url else "", _next(facts)) if part)
    )
    return within("\n\n".join(part for part in parts if part) + "\n", LONGEST_TEXT)


def _wanted(facts: PullFacts, repository: Repository, existing: bool) -> bool:
    if repository.comment == "never":
        return False
    if existing or repository.comment == "always":
        return True
    if facts.state is State.HELD:
        return True
    plain = all(chain.is_plain_pass for chain in facts.chains)
    return facts.state is State.DONE and (not facts.chains or not plain or bool(facts.unproven))


def _next(facts: PullFacts) -> str:
    if facts.state is State.HELD:
        return f"Valid: {code(f'/tipc approve {facts.key.head_sha}')}"
    return f"{code(FORMS['rerun'])} · {code(FORMS['help'])}" if facts.state is State.DONE else ""
