"""The table of failed attempts in `tipcflow show`."""

from typing import TYPE_CHECKING

from tipcflow.cli.output.names import short_step
from tipcflow.cli.output.output import columns
from tipcflow.domain.run.failure import failure_before, failures_of

if TYPE_CHECKING:
    from tipcflow.cli.show.command import Story


def failure_lines(story: "Story", width: int | None) -> list[str]:
    """One row per failed attempt, in chronological order."""
    found = failures_of(story.failures, story.attempts)
    before = failure_before(story.failures)
    if before is not None:
        found = {("", 0): before, **found}
    rows = [
        (
            failure.failure_class.value,
            short_step(story.plan, step) if step else "(before)",
            str(attempt) if attempt else "",
            failure.culprit,
            " ".join(filter(None, map(_sentence, (failure.remedy.means, failure.then, failure.remedy.advice)))),
        )
        for (step, attempt), failure in found.items()
    ]
    lines = columns(("CLASS", "STEP", "TRY", "ROOT CAUSE", "WHAT TO DO"), rows, width=width) if rows else []
    evidence = [file for failure in found.values() for file in failure.evidence]
    return [*lines, *(f"evidence: {story.logs / file}" for file in evidence)]


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].rstrip('.')}." if words else ""
