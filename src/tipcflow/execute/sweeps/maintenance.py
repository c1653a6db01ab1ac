"""Maintenance of a deployment: sweeps that may run at any time, in parallel with active runs, and repeatedly.

Each sweep is a function of an `Upkeep`; it reports its findings and returns one line about its actions. What is
not reachable now is left to the next sweep.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.config.cluster import load_cluster
from tipcflow.domain import Cluster, ConfigError, Node
from tipcflow.execute.node.link import Connect
from tipcflow.execute.progress import Listener, silent

if TYPE_CHECKING:
    from tipcflow.store import Store

DAY_S = 24 * 3600.0
# A run whose controller cannot be queried: a suspended machine may continue it in the morning.
ABANDONED_S = DAY_S
# A passed run's folder on a node contains nothing that was not collected; it stays for one day for inspection.
PASSED_FOLDER_S = DAY_S
# Runs that did not pass are investigated by users, who may be on holiday.
OTHER_FOLDER_S = 14 * DAY_S
# Can be recreated from the suite at any time; a run that is cleared after a month is resolved from scratch.
SNAPSHOT_S = 30 * DAY_S


class Owner(StrEnum):
    """The scheduler's view of a run's DAG run."""

    LIVING = "living"
    ENDED = "ended"
    UNKNOWN = "unknown"


def _unknown(dag_id: str, run_id: str) -> Owner:
    return Owner.UNKNOWN


def _listen(run: str) -> Listener:
    return silent


@dataclass(frozen=True)
class Upkeep:
    """The context of sweeps.

    Attributes:
        connect: connects to nodes.
        report: receives a line for each finding.
        owner: returns the scheduler's state of a DAG run (dag_id, run_id).
        listen: run -> listener for the events of its end.
        now: seconds since the epoch.
    """

    store: "Store"
    home: Path
    config_dir: Path
    connect: Connect
    report: Callable[[str], None]
    owner: Callable[[str, str], Owner] = _unknown
    listen: Callable[[str], Listener] = _listen
    now: float = field(default_factory=time.time)


def known_clusters(upkeep: Upkeep) -> list[Cluster]:
    """Return all clusters in the configuration folder; invalid files are reported and skipped."""
    clusters = []
    for path in sorted((upkeep.config_dir / "clusters").glob("*.yaml")):
        try:
            clusters.append(load_cluster(path.stem, upkeep.config_dir))
        except ConfigError as error:
            upkeep.report(f"cluster {path.stem} is skipped: {error}")
    return clusters


def place_of(node: Node) -> tuple[str, str, str]:
    """Return the identity of a node across clusters: address, login and workspace."""
    reached = node.exec.model_dump_json() if node.exec else node.connection or node.ssh.model_dump_json()
    return node.address, reached, node.workspace
