"""`tipcflow flaky`: equal runs with different outcomes."""

from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.output.output import columns, echo_lines, terminal_width
from tipcflow.cli.output.records import refuse_both
from tipcflow.cli.overview.printing import AsCsv, AsJson, note_generated, print_for_programs

if TYPE_CHECKING:
    from tipcflow.report.overview.flaky import Flaky, FlakyNode, Rate


def flaky(
    suite: Annotated[str, typer.Option(help="Only chains of this suite.")] = "",
    days: Annotated[float, typer.Option(min=1, max=400, help="Runs of the last N days.")] = 90,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
) -> None:
    """Show chains whose equal runs ended differently (same framework build, suite commit, mode, environment).

    Rates have a 95 % Wilson interval.
    """
    from tipcflow.execute.overview.flaky import load_flaky
    from tipcflow.store import Store

    refuse_both(as_json=as_json, as_csv=as_csv)
    with Store.open() as store:
        overview = load_flaky(store, days=days, suite=suite)
        note_generated(store.recorded.has_generated())
    if not print_for_programs(overview, as_json=as_json, as_csv=as_csv):
        echo_lines(flaky_lines(overview, width=terminal_width()))


def flaky_lines(overview: "Flaky", *, width: int | None) -> list[str]:
    """The overview as text: chains, the surest first, then nodes."""
    lines = [
        f"{len(overview.chains)} of {overview.repeated} chains with repeated runs ended differently"
        f" in the last {overview.days:g} days"
    ]
    rows = [
        (
            rate_text(chain.disagreeing),
            str(chain.disagreeing.runs),
            f"{chain.mixed} of {chain.groups}",
            chain.chain,
        )
        for chain in overview.chains
    ]
    if rows:
        lines += ["", *columns(("RATE (95 %)", "RUNS", "MIXED GROUPS", "CHAIN"), rows, width=width)]
    lines += _proposed(overview, width)
    names = overview.node_names
    nodes = [
        (
            rate_text(node.infrastructure),
            str(node.infrastructure.runs),
            *_elsewhere(node),
            names[node.cluster, node.node],
        )
        for node in overview.nodes
    ]
    if nodes:
        head = ("INFRASTRUCTURE (95 %)", "RUNS", "RED, ELSEWHERE GREEN (95 %)", "EQUAL RUNS", "NODE")
        lines += ["", *columns(head, nodes, width=width)]
    return lines


def _elsewhere(node: "FlakyNode") -> tuple[str, str]:
    rate = node.red_elsewhere_green
    return (rate_text(rate), str(rate.runs)) if rate else ("-", "0")


def _proposed(overview: "Flaky", width: int | None) -> list[str]:
    if not overview.proposals:
        return []
    rows = [
        (rate_text(each.failed), str(each.failed.runs), each.check, each.run, f"{each.chain}: {each.signature}")
        for each in overview.proposals
    ]
    head = ("FAILED (95 %)", "RUNS", "CHECK", "NEWEST", "CHAIN AND SIGNATURE")
    commands = [each.command for each in overview.proposals]
    return ["", *columns(head, rows, width=width), "", "to quarantine one, if its cause is known:", *commands]


def rate_text(rate: "Rate") -> str:
    """A share with its interval in percent: `23 % (8-50)`."""
    return f"{100 * rate.rate:.0f} % ({100 * rate.low:.0f}-{100 * rate.high:.0f})"
