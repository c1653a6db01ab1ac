"""`tipcflow nodes --history`: which node is slower than before, and since when."""

from collections.abc import Sequence

from tipcflow.cli.output.output import echo_lines, print_json
from tipcflow.cli.output.records import print_records
from tipcflow.domain.numbers.units import counted, iso, utc_minute
from tipcflow.domain.run.drains import Drain
from tipcflow.report.overview.node_history import NodeHistory, advice, change_text

_COLUMNS = ("cluster", "node", "source", "size", "elsewhere", "since", "since_at", "runs", "is_slow")


def print_history(history: NodeHistory, drains: Sequence[Drain], *, as_json: bool, as_csv: bool) -> None:
    """Print the trends of nodes and the drains; as CSV a row per slowdown."""
    if as_json:
        drained = [drain.model_dump(mode="json") for drain in drains]
        print_json(history.model_dump(mode="json") | {"drains": drained})
    elif as_csv:
        rows = [
            change.model_dump()
            | {"cluster": trend.cluster, "since_at": iso(change.since_at), "is_slow": trend.is_slow}
            for trend in history.nodes
            for change in trend.changes
        ]
        print_records(rows, names=_COLUMNS)
    else:
        echo_lines([*history_lines(history), *map(drain_line, drains)])


def drain_line(drain: Drain) -> str:
    """A drain as text: who drained the node, why, and the end or the command that ends it."""
    began = f"{drain.cluster}/{drain.node}: drained {utc_minute(drain.at)} by {drain.who}: {drain.why}"
    if drain.ended_at is not None:
        return f"{began}; in service since {utc_minute(drain.ended_at)} by {drain.ended_by}: {drain.ended_why}"
    return f"{began}; undo: tipcflow nodes undrain {drain.node} --cluster {drain.cluster} --because '…'"


def history_lines(history: NodeHistory) -> list[str]:
    """The trends as text: a sentence, then each node with its slowdowns."""
    lines = [history.sentence]
    for trend in history.nodes:
        state = "slower" if trend.is_slow else "suspected" if trend.changes else "as before"
        lines.append(f"{history.name(trend)}: {state}, {counted(trend.runs, 'run')}")
        lines += [f"  {change_text(change)}" for change in trend.changes]
        lines += [f"  {line}" for line in advice(trend)]
    return lines
