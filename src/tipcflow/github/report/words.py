"""Shared parts of the texts. Text of logs and users cannot leave its cell, mention a user or become a link."""

from collections.abc import Sequence

from tipcflow.domain.numbers.units import minutes
from tipcflow.github.report.facts import ChainFacts, Finding, PullFacts
from tipcflow.report.text import markdown_text
from tipcflow.report.text.markdown_text import raw_table
from tipcflow.report.text.plain import one_line

_LONGEST_CELL = 300
_TOP = 10
_OPEN, _CLOSE = "<details>", "</details>"
CUT = "\n\n… truncated; the page of the run has the rest.\n"


def cell(text: str) -> str:
    """One line of text as Markdown."""
    line = one_line(text)
    short = line if len(line) <= _LONGEST_CELL else f"{line[: _LONGEST_CELL - 1]}…"
    return markdown_text.cell(short)


def code(text: str) -> str:
    """One line of text as code."""
    return f"`{one_line(text).replace('`', chr(39))}`"


def link(text: str, url: str) -> str:
    """A link, or the text without an address."""
    return f"[{cell(text)}]({url})" if url else cell(text)


def short(sha: str) -> str:
    """The beginning of a commit hash."""
    return sha[:8]


def chains_table(chains: Sequence[ChainFacts]) -> str:
    """Chain, status or current step, reason, and why it was selected."""
    rows: list[tuple[str, ...]] = [
        (
            link(chain.chain, chain.url),
            chain.status.value if chain.status else (f"running {cell(chain.step)}" if chain.step else "waiting"),
            cell(chain.reason),
            cell(chain.selected),
        )
        for chain in chains
    ]
    head: tuple[str, ...] = ("chain", "status", "reason", "selected because")
    durations = [_minutes(chain) for chain in chains]
    if any(durations):
        head, rows = (*head, "minutes"), [(*row, time) for row, time in zip(rows, durations, strict=True)]
    return raw_table(head, rows)


def _minutes(chain: ChainFacts) -> str:
    """Predicted and real minutes; '' if both are unknown."""
    parts = []
    if chain.took_s and chain.status is not None:
        parts.append(minutes(chain.took_s))
    if chain.predicted_s:
        parts.append(f"predicted {minutes(chain.predicted_s)}")
    return ", ".join(parts)


def findings_table(chains: Sequence[ChainFacts]) -> str:
    """The worst findings of all chains with their figures; '' without findings."""
    ranked = sorted(
        (
            (finding.status.severity, number, chain, finding)
            for number, (chain, finding) in enumerate(_findings(chains))
        ),
        key=lambda entry: (-entry[0], entry[1]),
    )
    if not ranked:
        return ""
    rows = [
        (
            cell(chain),
            cell(finding.where),
            cell(finding.metric),
            finding.status.value,
            *map(cell, (finding.before, finding.now, finding.noise)),
        )
        for _, _, chain, finding in ranked[:_TOP]
    ]
    more = f"\n\n{len(ranked) - _TOP} more findings." if len(ranked) > _TOP else ""
    return raw_table(("chain", "where", "metric", "status", "before", "now", "noise"), rows) + more


def _findings(chains: Sequence[ChainFacts]) -> list[tuple[str, Finding]]:
    return [(chain.chain, finding) for chain in chains for finding in chain.findings]


def lists(facts: PullFacts) -> list[str]:
    """Accuracy, unproven parts, comparisons and the command, each with its heading."""
    parts = []
    if facts.accuracy:
        parts.append("### Accuracy\n\n" + "\n".join(f"- {cell(line)}" for line in facts.accuracy))
    if facts.unproven:
        parts.append("### Not proven\n\n" + "\n".join(f"- {cell(part)}" for part in facts.unproven))
    if facts.compared:
        parts.append("### A/B comparison\n\n" + "\n".join(f"- {cell(line)}" for line in facts.compared))
    if facts.command:
        parts.append(f"### Reproduce\n\n{code(facts.command)}")
    return parts


def folded(title: str, text: str) -> str:
    """A part that is shown on request; the text is Markdown."""
    return f"{_OPEN}<summary>{cell(title)}</summary>\n\n{text}\n\n{_CLOSE}"


def within(text: str, limit: int) -> str:
    """The text within a limit of characters, cut at the end of a line."""
    if len(text) <= limit:
        return text
    kept = text[: limit - len(CUT) - len(_CLOSE) - 2]
    kept = kept[: kept.rfind("\n")]
    end = f"\n\n{_CLOSE}" if kept.count(_OPEN) > kept.count(_CLOSE) else ""
    return kept + end + CUT
