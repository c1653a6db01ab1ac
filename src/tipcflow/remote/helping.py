"""Marks of tipcflow commands on a node: purpose, owner and deadline.

A node may not notice a broken connection. Its commands are found by these variables
(`tipcflow.remote.runner.helpers`), and end at their deadline.
"""

from collections.abc import Sequence

KILL_AFTER_S = 5


def helper(
    what: str, place: str, seconds: float, words: Sequence[str], *, timed: bool = True, starter: str = ""
) -> list[str]:
    """Return the words of a marked command.

    Args:
        what: its purpose: `upload`, `fetch`, `watch`, …
        place: the workspace, or a path below it, that it works for.
        seconds: its deadline.
        timed: end it at its deadline from outside; False for a command that checks TIPCFLOW_DEADLINE itself.
        starter: of a Slurm allocation, which starts the node runner; '' without one.
    """
    limit = str(round(seconds))
    marks = [f"TIPCFLOW_HELPER={what}", f"TIPCFLOW_FOR={place}", f"TIPCFLOW_DEADLINE={limit}"]
    marks += [f"TIPCFLOW_STARTER={starter}"] if starter else []
    return ["env", *marks, *(["timeout", "-k", str(KILL_AFTER_S), limit] if timed else []), *words]
