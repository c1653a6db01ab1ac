"""`tipcflow coverage`: what is declared, planned, ran and passed, and what no run proves."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.output.output import columns, echo_lines, terminal_width
from tipcflow.cli.output.records import refuse_both
from tipcflow.cli.overview.printing import AsCsv, AsJson, note_generated, print_for_programs
from tipcflow.domain import ConfigError
from tipcflow.domain.numbers.units import utc

if TYPE_CHECKING:
    from tipcflow.report.overview.coverage import ChainCoverage, Coverage


def coverage(
    suite: Annotated[str, typer.Option(help="Only chains of this suite.")] = "",
    gap: Annotated[str, typer.Option(help="Only chains with this gap, e.g. 'never run'.")] = "",
    days: Annotated[float, typer.Option(min=0, help="Chains without a run in the last N days have a gap.")] = 14,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show which chains are declared, ran and passed, and their gaps (never run, no target, …)."""
    from tipcflow.config.settings import settings
    from tipcflow.execute.overview.coverage import load_coverage
    from tipcflow.report.overview.coverage import GAPS
    from tipcflow.store import Store

    refuse_both(as_json=as_json, as_csv=as_csv)
    if gap and gap not in GAPS:
        raise ConfigError("is not a gap", key="--gap", found=gap, expected=f"one of {', '.join(GAPS)}")
    config_dir: Path = settings().config_dir
    with Store.open() as store:
        overview = load_coverage(store, config_dir, days=days, suite=suite)
        note_generated(store.recorded.has_generated())
    if gap:
        chains = tuple(chain for chain in overview.chains if gap in chain.gaps)
        overview = overview.model_copy(update={"chains": chains})
    for problem in overview.problems:
        typer.echo(problem, err=True)
    if not print_for_programs(overview, as_json=as_json, as_csv=as_csv):
        echo_lines(coverage_lines(overview, width=terminal_width()))


def coverage_lines(overview: "Coverage", *, width: int | None) -> list[str]:
    """The overview as text: totals, gaps, reasons, then the chains with gaps, the worst first."""
    totals = overview.totals
    lines = [
        f"{totals['chains']} chains: {totals['declared']} declared, {totals['ran']} ran, {totals['passed']} passed"
        f" at least once, {totals['passing']} pass now",
        f"{totals['legs']} legs in their newest runs: {totals['legs_ran']} ran, {totals['legs_passed']} passed",
        "",
    ]
    lines += columns(("CHAINS", "GAP"), [(str(count), gap) for gap, count in overview.gaps.items()], width=width)
    if overview.reasons:
        rows = [(str(reason.legs), reason.reason) for reason in overview.reasons]
        lines += ["", *columns(("LEGS", "NOT RUN BECAUSE"), rows, width=width)]
    gaps = [(utc(chain.newest_at)[:10], chain.chain, _gaps(chain)) for chain in overview.chains if chain.gaps]
    return [*lines, "", *columns(("LAST RUN", "CHAIN", "GAPS"), gaps, width=width)]


def _gaps(chain: "ChainCoverage") -> str:
    why = f" ({'; '.join(chain.no_framework)})" if chain.no_framework else ""
    return ", ".join(chain.gaps) + why
