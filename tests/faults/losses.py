"""The losses that the ranks printed, against those in the database: every attempt of every run."""

import re
from collections import defaultdict
from pathlib import Path

from tests.support.certify import Site

from tipcflow.domain.run.attempt import Attempt

EPOCHS, ITERATIONS, RANKS = 2, 5, 4
DECLARED = EPOCHS * ITERATIONS
# The node of each rank.
NODE_OF = ("a", "a", "b", "b")

# As the toy suite prints it.
LOSS = re.compile(r", loss: (\S+?),")

# (attempt, rank) -> losses, in order.
Ledger = dict[tuple[int, int], list[float]]


def stored(site: Site, run: str) -> Ledger:
    """(attempt, rank) -> the training losses of a run in the database, in order."""
    found: dict[tuple[int, int], list[tuple[int, float]]] = defaultdict(list)
    with site.store() as store:
        for one in store.measurements.of(run, metric="loss"):
            if one.step.endswith("train"):
                found[one.attempt, one.rank].append((one.ordinal, one.value))
    return {key: [value for _, value in sorted(several)] for key, several in found.items()}


def on_nodes(workspaces: dict[str, Path], printed: Ledger) -> set[tuple[int, int]]:
    """The (attempt, rank) of the first attempt whose losses are all in the logs on the nodes.

    Args:
        workspaces: node -> its workspace.
        printed: what each rank printed.
    """
    found = set()
    for rank, node in enumerate(NODE_OF):
        logs = sorted(workspaces[node].glob(f"runs/*/src/**/workerlog.{rank % NODE_OF.count(node)}"))
        held = [float(loss) for log in logs for loss in LOSS.findall(log.read_text(errors="replace"))]
        if held[: len(printed.get((1, rank), []))] == printed.get((1, rank), []):
            found.add((1, rank))
    return found


def out_of_reach(attempts: list[Attempt], output: str | None) -> set[tuple[int, int]]:
    """The (attempt, rank) whose node was lost and whose log could not be fetched.

    Args:
        attempts: of the run.
        output: of `tipcflow run`, which names what it could not fetch; None where nothing shows it.
    """
    found = set()
    for one in attempts:
        if not one.step.endswith("train"):
            continue
        ended = {record.node for record in one.records}
        for rank, node in enumerate(NODE_OF):
            shown = output is None or f"the logs of node {node} could not be" in output
            if node not in ended and shown:
                found.add((one.attempt, rank))
    return found


def doubled_or_lost(
    printed: Ledger, kept: Ledger, *, passed: bool, gone: set[tuple[int, int]] | None = None
) -> list[str]:
    """How the database differs from what was printed, for every attempt of every rank.

    The last line of a rank that was cut short may be printed and not in the ledger, or the other way round. A rank
    that printed every declared loss was not cut short, nor is any rank of the attempt that passed.

    Args:
        gone: (attempt, rank) whose log may be missing as a whole.
    """
    wrong = []
    last = max((attempt for attempt, _ in printed), default=0)
    for attempt, rank in sorted(printed.keys() | kept.keys()):
        known, found = printed.get((attempt, rank), []), kept.get((attempt, rank), [])
        if not found and (attempt, rank) in (gone or ()):
            continue
        whole = (passed and attempt == last) or len(known) >= DECLARED
        if abs(len(found) - len(known)) > (0 if whole else 1):
            wrong.append(f"attempt {attempt}, rank {rank}: {len(known)} losses printed, {len(found)} stored")
        same = min(len(found), len(known))
        if not _equal(found[:same], known[:same]):
            wrong.append(f"attempt {attempt}, rank {rank}: stored losses differ from the printed ones")
    return wrong


def _equal(one: list[float], other: list[float]) -> bool:
    return all(a == b or (a != a and b != b) for a, b in zip(one, other, strict=True))
