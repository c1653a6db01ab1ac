"""The table of failed attempts in `tipcflow show`."""

from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.cli.output.output import columns
from tipcflow.report.text.names import short_step

if TYPE_CHECKING:
    from tipcflow.report.run.data import RunData


def failure_lines(data: "RunData", logs: Path, width: int | None) -> list[str]:
    """One row per failed attempt, in chronological order."""
    failures = data.all_failures
    rows = [
        (
            failure.failure_class.value,
            short_step(data.plan, key.step) if key.step else "(before)",
            str(key.attempt) if key.attempt else "",
            failure.root_cause,
            " ".join(filter(None, map(_sentence, (failure.remedy.means, failure.then, failure.remedy.advice)))),
        )
        for key, failure in failures.items()
    ]
    lines = columns(("CLASS", "STEP", "ATTEMPT", "ROOT CAUSE", "WHAT TO DO"), rows, width=width) if rows else []
    evidence = [file for failure in failures.values() for file in failure.evidence]
    return [*lines, *(f"evidence: {logs / file}" for file in evidence)]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""
