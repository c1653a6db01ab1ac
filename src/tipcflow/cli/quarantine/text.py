"""Quarantines as text."""

from collections.abc import Sequence

from tipcflow.cli.output.output import columns
from tipcflow.domain.numbers.units import first_names, utc
from tipcflow.domain.quarantine.entry import Quarantine
from tipcflow.report.overview.decisions import state_of

_LISTED = 5


def list_lines(
    quarantines: Sequence[Quarantine], clean: Sequence[int], now: float, *, width: int | None
) -> list[str]:
    """A table of quarantines.

    Args:
        clean: clean runs so far, of each.
    """
    rows = [
        (
            str(each.number),
            state_of(each, now),
            utc(each.expires_at)[:16],
            f"{count} of {each.clean_runs}",
            each.owner,
            each.about,
            f"{each.chain} in {each.mode}: {each.why}",
        )
        for each, count in zip(quarantines, clean, strict=True)
    ]
    head = ("NUMBER", "STATE", "UNTIL (UTC)", "CLEAN RUNS", "OWNER", "CHECK", "CHAIN AND REASON")
    return columns(head, rows, width=width)


def quarantine_lines(quarantine: Quarantine, clean: int, failed: Sequence[str], now: float) -> list[str]:
    """One quarantine, a fact per line.

    Args:
        failed: runs that failed since it was made, newest first.
    """
    scope = f"{quarantine.about}{f', metric {quarantine.metric}' if quarantine.metric else ''}"
    environment = quarantine.environment or "an unknown environment"
    lines = [
        f"quarantine {quarantine.number}: {state_of(quarantine, now)}",
        f"chain        {quarantine.chain} in {quarantine.mode} on {environment}",
        f"check        {scope}",
        f"signature    {quarantine.signature}",
        f"owner        {quarantine.owner}",
        f"made         {utc(quarantine.created_at)} by {quarantine.who}: {quarantine.why}",
        f"expires      {quarantine.until}",
        f"evidence     {quarantine.failed} of {quarantine.judged} runs failed: {_names(quarantine.evidence)}",
        f"since then   {clean} of {quarantine.clean_runs} clean runs on newer commits; failed: {_names(failed)}",
    ]
    if quarantine.released_at is not None:
        who, why = quarantine.released_by, quarantine.released_because
        lines.append(f"released     {utc(quarantine.released_at)} by {who}: {why}")
    return lines


def _names(runs: Sequence[str]) -> str:
    return first_names(runs, _LISTED) or "none"
