"""`tipcflow nodes --history`: which node is slower than before, and since when."""

from tipcflow.cli.output.output import echo_lines, print_json
from tipcflow.cli.output.records import print_records
from tipcflow.domain.numbers.units import counted, iso
from tipcflow.report.overview.node_history import NodeHistory, advice, change_text

_COLUMNS = ("node", "source", "size", "elsewhere", "since", "since_at", "runs", "is_slow")


def print_history(history: NodeHistory, *, as_json: bool, as_csv: bool) -> None:
    """Print the trends of nodes; as CSV a row per slowdown."""
    if as_json:
        print_json(history.model_dump(mode="json"))
    elif as_csv:
        rows = [
            change.model_dump() | {"since_at": iso(change.since_at), "is_slow": trend.is_slow}
            for trend in history.nodes
            for change in trend.changes
        ]
        print_records(rows, names=_COLUMNS)
    else:
        echo_lines(history_lines(history))


def history_lines(history: NodeHistory) -> list[str]:
    """The trends as text: a sentence, then each node with its slowdowns."""
    lines = [history.sentence]
    for trend in history.nodes:
        state = "slower" if trend.is_slow else "suspected" if trend.changes else "as before"
        lines.append(f"{trend.node}: {state}, {counted(trend.runs, 'run')}")
        lines += [f"  {change_text(change)}" for change in trend.changes]
        lines += [f"  {line}" for line in advice(trend)]
    return lines
