"""Hang evidence: the state of all nodes of a gang, collected before any of them is stopped."""

import json
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tipcflow.domain import InfraError
from tipcflow.domain.numbers.units import limit
from tipcflow.execute.job.member import Member

# Limit for all nodes together: an unresponsive node must not delay the end of the others.
GATHER_S = 10.0
EVIDENCE = "evidence.json"


def gather(members: Sequence[Member], folder: Path, *, seconds: float = GATHER_S) -> dict[str, str]:
    """Collect evidence from every node concurrently, and store it as `<node>/evidence.json`.

    Args:
        folder: folder of the attempt on this machine.

    Returns:
        node -> why it sent no evidence in time.
    """
    missing = {member.name: f"no response within {limit(seconds)}" for member in members}
    over, guard = threading.Event(), threading.Lock()

    def fetch_evidence(member: Member) -> None:
        """Store a member's evidence, or why there is none."""
        try:
            seen = member.session.evidence(member.spec, seconds)
            place = folder / member.name / EVIDENCE
            with guard:
                if over.is_set():
                    return  # the folder may belong to the next attempt already
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(json.dumps(seen))
                missing.pop(member.name, None)
        except (InfraError, OSError) as error:
            missing[member.name] = str(error)

    threads = [threading.Thread(target=fetch_evidence, args=(member,), daemon=True) for member in members]
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    with guard:
        over.set()
        return dict(missing)


def gathered(folder: Path, nodes: Sequence[str]) -> tuple[dict[str, Mapping[str, Any]], list[Path]]:
    """Return (node -> its evidence, the files that contain it) for the nodes that sent evidence."""
    seen: dict[str, Mapping[str, Any]] = {}
    files = []
    for node in nodes:
        path = folder / node / EVIDENCE
        try:
            evidence = json.loads(path.read_text())
        except (OSError, ValueError):
            continue
        if isinstance(evidence, dict) and evidence.get("why"):
            seen[node] = evidence
            files += [path, *sorted((folder / node / "evidence").glob("*"))]
    return seen, files
