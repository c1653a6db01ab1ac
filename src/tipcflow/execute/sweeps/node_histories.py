"""Find slower nodes, for the page *Nodes*."""

from tipcflow.execute.overview.node_history import refresh_node_histories
from tipcflow.execute.sweeps.maintenance import Upkeep
from tipcflow.report.overview.node_history import advice, change_text


def node_histories(upkeep: Upkeep) -> str:
    """Compare the speed of each node with its own history, and store the result; report slower nodes."""
    overall = refresh_node_histories(upkeep.store, now=upkeep.now)[0]
    for trend in overall.slow:
        for line in (*map(change_text, trend.changes), *advice(trend)):
            upkeep.report(f"{overall.name(trend)}: {line}")
    return overall.sentence
