"""The comment about an A/B comparison that `/tipc ab` requested."""

import math
from dataclasses import dataclass

from tipcflow.config.repository import Repository
from tipcflow.domain import Status
from tipcflow.domain.numbers.units import counted
from tipcflow.github.report.check_run import LONGEST_TEXT
from tipcflow.github.report.words import cell, code, short, within
from tipcflow.report.text.markdown_text import raw_table

_ROWS = 30
_OUTCOMES = {
    Status.PASS: "better or the same",
    Status.REGRESSION: "worse",
    Status.FAILED: "failed",
    Status.UNCONFIRMED: "undecided",
}


@dataclass(frozen=True)
class ComparedMetric:
    """A metric of both sides: B / A, its interval, and what B is."""

    where: str
    metric: str
    ratio: float
    low: float
    high: float
    outcome: str


@dataclass(frozen=True)
class ComparedChain:
    """A chain; `status` is None before the result, `verdict` one line."""

    chain: str
    status: Status | None = None
    verdict: str = ""
    metrics: tuple[ComparedMetric, ...] = ()


@dataclass(frozen=True)
class ComparisonFacts:
    """A comparison of the base (A) and the head (B) of a pull request.

    Attributes:
        base, base_sha: branch, and its commit that B is compared with; '' before the start.
        by: the user who requested it.
        why: reasons of the planner, one sentence each.
        problem: why it was not started, or why it ended early; '' otherwise.
    """

    head_sha: str
    base: str
    base_sha: str
    by: str
    chains: tuple[ComparedChain, ...] = ()
    why: tuple[str, ...] = ()
    problem: str = ""
    ended: bool = False


def comparison_text(facts: ComparisonFacts, repository: Repository) -> str:
    """Return the comment, without its hidden first line."""
    base = f"{code(short(facts.base_sha))} of {cell(facts.base)}" if facts.base_sha else cell(facts.base)
    parts = [
        f"### {repository.check}: A/B comparison {_head(facts)}",
        f"A: base {base}. B: head {code(short(facts.head_sha))}. Requested by {cell(facts.by)}.",
    ]
    if facts.why:
        parts.append("\n".join(f"- {cell(each)}" for each in facts.why))
    if facts.problem:
        parts.append(cell(facts.problem))
    if facts.chains:
        rows = [(cell(each.chain), _outcome(each), cell(each.verdict)) for each in facts.chains]
        parts.append(raw_table(("chain", "B is", "result"), rows))
    if metrics := _metrics(facts):
        parts.append(metrics)
    return within("\n\n".join(parts) + "\n", LONGEST_TEXT)


def _head(facts: ComparisonFacts) -> str:
    if not facts.ended:
        done = sum(each.status is not None for each in facts.chains)
        return f"running, {done} of {counted(len(facts.chains), 'chain')} ended" if facts.chains else "waiting"
    worst = max(
        (each.status for each in facts.chains if each.status), key=lambda each: each.severity, default=None
    )
    return "not done" if worst is None else _word(worst)


def _word(status: Status) -> str:
    return _OUTCOMES.get(status, status.value)


def _outcome(chain: ComparedChain) -> str:
    return "running" if chain.status is None else _word(chain.status)


def _metrics(facts: ComparisonFacts) -> str:
    """Return the table of the metrics; '' without any."""
    rows = [
        (
            cell(chain.chain),
            cell(each.where),
            cell(each.metric),
            f"{each.ratio:.4f}",
            "unknown" if math.isinf(each.high) else f"{each.low:.4f} to {each.high:.4f}",
            cell(each.outcome),
        )
        for chain in facts.chains
        for each in chain.metrics
    ]
    if not rows:
        return ""
    more = f"\n\n{counted(len(rows) - _ROWS, 'more metric')}." if len(rows) > _ROWS else ""
    head = ("chain", "where", "metric", "B / A", "interval", "B is")
    return raw_table(head, rows[:_ROWS]) + more
