"""Tables of numbers on narrow terminals."""

from collections.abc import Sequence

from tipcflow.cli.output.output import columns


def fitting(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None, spare: Sequence[str]
) -> list[str]:
    """Lines of a table, one line per row.

    Args:
        width: columns of the terminal; None for no limit.
        spare: columns to drop, in this order, until the table fits.
    """
    shown = list(range(len(headers)))
    for name in spare:
        if width is None or _width([headers, *rows], shown) <= width:
            break
        shown.remove(list(headers).index(name))
    return columns([headers[at] for at in shown], [[row[at] for at in shown] for row in rows], width=None)


def _width(table: Sequence[Sequence[str]], shown: Sequence[int]) -> int:
    return sum(max(len(row[at]) for row in table) + 2 for at in shown) - 2
