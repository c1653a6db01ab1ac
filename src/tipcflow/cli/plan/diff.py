"""`tipcflow plan --diff`: commands of the suite's script compared with those of the params file, with reasons."""

from collections.abc import Sequence

import typer

from tipcflow.cli.output.output import print_json
from tipcflow.domain import Plan, Quirk
from tipcflow.plan.view.dialect_keys import DialectKey
from tipcflow.plan.view.diff import EVERYWHERE, Difference, count_compared, differences


def print_differences(bash: Plan, spec: Plan, keys: Sequence[DialectKey], *, as_json: bool) -> None:
    """Print the differences, and the quirks that no command shows; `keys` are those of the dialect."""
    all_differences = differences(bash, spec, keys)
    unseen = [
        quirk for quirk in spec.quirks if all(quirk not in difference.reasons for difference in all_differences)
    ]
    if as_json:
        print_json(
            {
                "chain": spec.chain,
                "mode": spec.mode,
                "differences": [difference.as_json() for difference in all_differences],
                "quirks": [quirk.model_dump() for quirk in spec.quirks],
                "everywhere": EVERYWHERE,
            }
        )
        return
    total = count_compared(bash, spec)
    typer.echo(f"{spec.chain}  {spec.mode}: {len(all_differences)} of {total} commands differ")
    for group in _alike(all_differences):
        _print_group(group, spec.dialect)
    _print_quirks("reasons", [quirk for quirk in spec.quirks if quirk not in unseen])
    _print_quirks("differences outside of commands", unseen)
    typer.echo("\nin every plan")
    for text in EVERYWHERE:
        typer.echo(f"  {text}")


def _alike(all_differences: Sequence[Difference]) -> list[list[Difference]]:
    """Group equal differences of a step, and those that one side lacks altogether."""
    groups: dict[tuple[object, ...], list[Difference]] = {}
    for difference in all_differences:
        text = (
            (difference.bash, difference.spec)
            if None not in (difference.bash, difference.spec)
            else (difference.bash is None,)
        )
        groups.setdefault(
            (difference.step, difference.leg == "", difference.reasons, difference.keys, text), []
        ).append(difference)
    return list(groups.values())


def _print_group(group: Sequence[Difference], dialect: str) -> None:
    first = group[0]
    what = f" {len(group)} legs" if first.leg and len(group) > 1 else f" {first.leg}" if first.leg else ""
    if not first.leg and (len(group) > 1 or first.node):
        what = " on node " + ", ".join(str(each.node + 1) for each in group)
    typer.echo(f"\n{first.step}{what}")
    typer.echo(f"  bash    {_side(first.bash)}")
    typer.echo(f"  spec    {_side(first.spec)}")
    typer.echo(f"  reason  {_reason(first, dialect)}")


def _reason(difference: Difference, dialect: str) -> str:
    quirks = [f"{quirk.id} (line {quirk.line})" if quirk.line else quirk.id for quirk in difference.reasons]
    keys = [f"{', '.join(difference.keys)} of dialect {dialect}"] if difference.keys else []
    return ", ".join([*quirks, *keys]) or "none is known"


def _side(words: str | None) -> str:
    return "no such command" if words is None else words or "nothing more"


def _print_quirks(title: str, quirks: Sequence[Quirk]) -> None:
    if quirks:
        typer.echo(f"\n{title}")
    for quirk in quirks:
        where = f"line {quirk.line} " if quirk.line else ""
        typer.echo(f"  {where}{quirk.id}: bash: {quirk.bash}; spec: {quirk.spec}")
