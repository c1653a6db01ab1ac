"""How a command of ours is marked on a node: what it does, for whom, and until when.

A connection may break without the node noticing. What it ran is found by these variables
(`tipcflow.remote.runner.helpers`), and ends by itself at its deadline.
"""

from collections.abc import Sequence

KILL_AFTER_S = 5


def helper(what: str, place: str, seconds: float, words: Sequence[str], *, timed: bool = True) -> list[str]:
    """The words of a marked command.

    Args:
        what: what it does: `upload`, `fetch`, `watch`, …
        place: the workspace, or a path below it, that it is for.
        seconds: its deadline.
        timed: end it at its deadline from outside; False for a command that minds TIPCFLOW_DEADLINE itself.
    """
    limit = str(round(seconds))
    marks = [f"TIPCFLOW_HELPER={what}", f"TIPCFLOW_FOR={place}", f"TIPCFLOW_DEADLINE={limit}"]
    return ["env", *marks, *(["timeout", "-k", str(KILL_AFTER_S), limit] if timed else []), *words]
