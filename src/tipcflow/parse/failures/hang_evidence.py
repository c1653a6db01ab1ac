"""Finds the rank that causes a hang, and why, from the evidence of the nodes (docs/reference/job-folder.md)."""

import re
from collections.abc import Mapping
from typing import Any

from tipcflow.domain import Frozen
from tipcflow.domain.numbers.units import rough

# Frames in which a process waits for its peers: collectives, and the stores at which ranks rendezvous.
_WAITING = re.compile(
    r"all_?reduce|all_?gather|reduce_?scatter|broadcast|\bbarrier|all_?to_?all|_wait_all|task\.wait|\.wait\(|"
    r"tcp_?store|rendezvous|init_parallel_env|init_process_group|process_group|/distributed/",
    re.IGNORECASE,
)
# A frame in the form of faulthandler and of py-spy, innermost first.
_FRAME = re.compile(
    r'^\s+File "(?P<file>[^"]+)", line (?P<line>\d+)(?: in (?P<name>\S+))?|^\s+(?P<spy>\S+ \([^)]+:\d+\))'
)
_XID = re.compile(r"Xid")
# Minimum lead of a rank's silence: ranks that wait for each other become silent almost simultaneously.
_CLEARLY_S = 5.0


class Behind(Frozen):
    """The rank for which the other ranks wait.

    Attributes:
        node, rank: its location.
        why: the explanation, part of a status reason.
    """

    node: str
    rank: int
    why: str = ""


def behind(evidence: Mapping[str, Mapping[str, Any]]) -> Behind | None:
    """Return the rank that is behind; None if undetermined.

    First by iterations: a rank whose log ends earlier than every other log. Then by stacks: a rank that is
    elsewhere while another rank waits in a collective. Then by silence: the rank that became silent clearly
    before the others; of ranks that count iterations if any does.

    Args:
        evidence: node -> its evidence.
    """
    return _by_iteration(evidence) or _by_stack(evidence) or _by_silence(evidence)


def was_silent(evidence: Mapping[str, Mapping[str, Any]], seconds: float) -> bool:
    """Return whether a rank's log had been silent for `seconds` when the evidence was collected.

    Only logs with an iteration count: many ranks never print.
    """
    logs = [log for seen in evidence.values() for log in seen.get("logs") or []]
    return any(_counts(log) and float(log.get("idle_s") or 0.0) >= seconds for log in logs)


def hardware(evidence: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the kernel's message about a broken GPU, with the node, '' without one."""
    for node, seen in evidence.items():
        for line in seen.get("kernel") or []:
            if _XID.search(str(line)):
                return f"node {node}: {str(line)[:200]}"
    return ""


def _by_iteration(evidence: Mapping[str, Mapping[str, Any]]) -> Behind | None:
    reached: dict[tuple[str, int], tuple[int, int]] = {}
    ended: list[tuple[int, int]] = []  # ranks without a process are not identified by the evidence
    with_epoch: set[bool] = set()
    for node, seen in evidence.items():
        for log in seen.get("logs") or []:
            rank = _rank(log)
            is_ended = rank < 0 and "workerlog." in str(log.get("log"))
            if (rank >= 0 or is_ended) and log.get("iteration") is not None:
                # Many suites restart the iteration count in every epoch.
                epoch = log.get("epoch")
                with_epoch.add(epoch is not None)
                point = (-1 if epoch is None else int(epoch), int(log["iteration"]))
                if is_ended:
                    ended.append(point)
                else:
                    reached[node, rank] = point
    if not reached or len(with_epoch) > 1:  # iterations of unknown epochs cannot be compared
        return None
    (node, rank), least = min(reached.items(), key=lambda entry: entry[1])
    others = [count for who, count in reached.items() if who != (node, rank)] or ended
    if not others or min(others) <= least:
        return None
    why = f"rank {rank} on node {node} is at {_point(least)}, other ranks at {_point(max(others))}"
    return Behind(node=node, rank=rank, why=why)


def _point(reached: tuple[int, int]) -> str:
    epoch, iteration = reached
    return (f"epoch {epoch} " if epoch >= 0 else "") + f"iteration {iteration}"


def _by_stack(evidence: Mapping[str, Mapping[str, Any]]) -> Behind | None:
    waiting: list[tuple[str, int]] = []
    elsewhere: list[tuple[str, int, str]] = []
    for node, seen in evidence.items():
        for process in seen.get("processes") or []:
            stack, rank = str(process.get("stack") or ""), _rank(process)
            # The data loaders of a rank also carry its rank; their stacks do not show the state of the rank.
            if not stack or rank < 0 or not process.get("main", True):
                continue
            if _WAITING.search(stack):
                waiting.append((node, rank))
            else:
                elsewhere.append((node, rank, innermost(stack)))
    if not elsewhere or not waiting or len({(node, rank) for node, rank, _ in elsewhere}) > 1:
        return None
    node, rank, frame = elsewhere[0]
    return Behind(
        node=node,
        rank=rank,
        why=f"rank {rank} on node {node} is in {frame or 'its own code'}, the others wait for it",
    )


def _by_silence(evidence: Mapping[str, Mapping[str, Any]]) -> Behind | None:
    logs = [(node, log) for node, seen in evidence.items() for log in seen.get("logs") or [] if _rank(log) >= 0]
    # A rank without an iteration proves nothing, unless no rank has one.
    logs = [(node, log) for node, log in logs if _counts(log)] or logs
    # The evidence of the nodes may be collected at different times; an old runner reports none.
    times = {node: float(evidence[node].get("t") or 0.0) for node, _ in logs}
    latest = max(times.values(), default=0.0) if all(times.values()) else 0.0
    silence = {
        (node, _rank(log)): float(log.get("idle_s") or 0.0) + (latest - times[node] if latest else 0.0)
        for node, log in logs
    }
    longest = sorted(silence.values())[-2:]
    if len(longest) < 2 or longest[1] - longest[0] < _CLEARLY_S:
        return None
    (node, rank), idle = max(silence.items(), key=lambda entry: entry[1])
    return Behind(node=node, rank=rank, why=f"rank {rank} on node {node} is silent for longest, {rough(idle)}")


def innermost(stack: str) -> str:
    """Return the position of a process, as `file:line (function)`: the innermost frame of the last listed
    thread."""
    frame = ""
    first = True
    for line in stack.splitlines():
        match = _FRAME.match(line)
        if not match:
            first = True
        elif first:
            spy = match["spy"]
            frame = spy or f"{match['file'].rpartition('/')[2]}:{match['line']} ({match['name'] or '?'})"
            first = False
    return frame


def _counts(log: Mapping[str, Any]) -> bool:
    return _rank(log) >= 0 and log.get("iteration") is not None


def _rank(seen: Mapping[str, Any]) -> int:
    rank = str(seen.get("rank", ""))
    return int(rank) if rank.isdigit() else -1
