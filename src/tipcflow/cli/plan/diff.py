"""`tipcflow plan --diff`: commands of the suite's script compared with those of the params file, with reasons."""

from collections.abc import Sequence

import typer

from tipcflow.cli.output.output import print_json
from tipcflow.domain import Plan, Quirk
from tipcflow.plan.view.diff import EVERYWHERE, Difference, compared, differences


def print_differences(bash: Plan, spec: Plan, *, as_json: bool) -> None:
    """Print the differences, and the quirks that no command shows."""
    found = differences(bash, spec)
    unseen = [quirk for quirk in spec.quirks if all(quirk not in each.reasons for each in found)]
    if as_json:
        print_json(
            {
                "chain": spec.chain,
                "mode": spec.mode,
                "differences": [each.as_json() for each in found],
                "quirks": [quirk.model_dump() for quirk in spec.quirks],
                "everywhere": EVERYWHERE,
            }
        )
        return
    total = compared(bash, spec)
    typer.echo(f"{spec.chain}  {spec.mode}: {len(found)} of {total} commands differ")
    for group in _alike(found):
        _print_group(group)
    _print_quirks("reasons", [quirk for quirk in spec.quirks if quirk not in unseen])
    _print_quirks("differences that no command shows", unseen)
    typer.echo("\neverywhere")
    for text in EVERYWHERE:
        typer.echo(f"  {text}")


def _alike(found: Sequence[Difference]) -> list[list[Difference]]:
    """Group equal differences of a step, and those that one side lacks altogether."""
    groups: dict[tuple[object, ...], list[Difference]] = {}
    for each in found:
        text = (each.bash, each.spec) if None not in (each.bash, each.spec) else (each.bash is None,)
        groups.setdefault((each.step, each.leg == "", each.reasons, text), []).append(each)
    return list(groups.values())


def _print_group(group: Sequence[Difference]) -> None:
    first = group[0]
    what = f" {len(group)} legs" if first.leg and len(group) > 1 else f" {first.leg}" if first.leg else ""
    if not first.leg and (len(group) > 1 or first.node):
        what = " on node " + ", ".join(str(each.node + 1) for each in group)
    typer.echo(f"\n{first.step}{what}")
    typer.echo(f"  bash    {_side(first.bash)}")
    typer.echo(f"  spec    {_side(first.spec)}")
    typer.echo(f"  reason  {', '.join(f'{q.id} (line {q.line})' for q in first.reasons) or 'none is known'}")


def _side(words: str | None) -> str:
    return "no such command" if words is None else words or "nothing more"


def _print_quirks(title: str, quirks: Sequence[Quirk]) -> None:
    if quirks:
        typer.echo(f"\n{title}")
    for quirk in quirks:
        where = f"line {quirk.line} " if quirk.line else ""
        typer.echo(f"  {where}{quirk.id}: bash: {quirk.bash}; spec: {quirk.spec}")
