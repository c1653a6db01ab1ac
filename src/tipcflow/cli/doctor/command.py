"""`tipcflow doctor`: checks this machine and a cluster's nodes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.output.records import AsCsv, print_records, refuse_both
from tipcflow.domain import Status, exit_code
from tipcflow.domain.numbers.units import counted

if TYPE_CHECKING:
    from tipcflow.cli.doctor.findings import Finding


def doctor(
    cluster: Annotated[
        str, typer.Option("--cluster", "-c", help="Also check the nodes of this cluster (name or YAML file).")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: AsCsv = False,
) -> None:
    """Check this machine and a cluster's nodes, and report how to fix problems; exit code 5 if there are any."""
    from tipcflow.cli.doctor.local import check_local
    from tipcflow.cli.doctor.nodes import check_nodes
    from tipcflow.cli.output.output import print_json
    from tipcflow.config.settings import settings

    refuse_both(as_json=as_json, as_csv=as_csv)
    chosen = settings()
    findings = check_local(chosen)
    if cluster:
        findings += check_nodes(cluster, chosen.config_dir)
    missing = sum(not finding.ok for finding in findings)
    if as_json:
        print_json({"ok": not missing, "findings": [finding.model_dump() for finding in findings]})
    elif as_csv:
        print_records([finding.model_dump() for finding in findings])
    else:
        print_findings(findings, missing)
    raise typer.Exit(exit_code(Status.INFRA_FAILURE) if missing else 0)


def print_findings(findings: Sequence["Finding"], missing: int) -> None:
    """Print findings as a table, and the number of problems."""
    from tipcflow.cli.output.output import columns, echo_lines, terminal_width

    rows = [(finding.where, finding.what, finding.word, finding.text) for finding in findings]
    echo_lines(columns(("WHERE", "CHECK", "STATE", "RESULT OR FIX"), rows, width=terminal_width()))
    typer.echo(counted(missing, "problem") if missing else "no problems")
