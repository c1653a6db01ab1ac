"""What keeps a deployment tidy: sweeps that may run at any time, beside runs that go on, and twice.

Each sweep is a function of an `Upkeep`; it says what it finds and returns one line of what it did. What it cannot
reach now it leaves to the next time.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.config.cluster import load_cluster
from tipcflow.domain import Cluster, ConfigError, Node
from tipcflow.execute.node.session import Connect
from tipcflow.execute.progress import Listener, silent

if TYPE_CHECKING:
    from tipcflow.store import Store

DAY_S = 24 * 3600.0
# A run that nobody can be asked about: a desk that slept over night goes on in the morning.
ABANDONED_S = DAY_S
# A passed run's folder on a node holds nothing that was not collected; a day to look at it all the same.
PASSED_FOLDER_S = DAY_S
# What did not pass is looked into by people, who have holidays.
OTHER_FOLDER_S = 14 * DAY_S
# Made again from the suite at any time; a run that is cleared after a month is resolved anew.
SNAPSHOT_S = 30 * DAY_S
# Live progress, which nobody watches afterwards; logs and measurements stay.
EVENTS_S = 90 * DAY_S


class Owner(StrEnum):
    """What a scheduler says of the DAG run that a run is."""

    LIVING = "living"
    ENDED = "ended"
    UNKNOWN = "unknown"


def _unknown(dag_id: str, run_id: str) -> Owner:
    return Owner.UNKNOWN


def _listen(run: str) -> Listener:
    return silent


@dataclass(frozen=True)
class Upkeep:
    """What sweeps work with.

    Attributes:
        connect: how nodes are reached.
        say: gets a line whenever something is found.
        owner: asks the scheduler about (dag_id, run_id) of a DAG run.
        listen: run -> who gets what happens while it is ended.
        now: seconds since the epoch.
    """

    store: "Store"
    home: Path
    config_dir: Path
    connect: Connect
    say: Callable[[str], None]
    owner: Callable[[str, str], Owner] = _unknown
    listen: Callable[[str], Listener] = _listen
    now: float = field(default_factory=time.time)


def known_clusters(upkeep: Upkeep) -> list[Cluster]:
    """All clusters in the folder of configurations; a wrong file is said, and passed over."""
    found = []
    for path in sorted((upkeep.config_dir / "clusters").glob("*.yaml")):
        try:
            found.append(load_cluster(path.stem, upkeep.config_dir))
        except ConfigError as error:
            upkeep.say(f"cluster {path.stem} is passed over: {error}")
    return found


def place_of(node: Node) -> tuple[str, str, str]:
    """What two clusters call the same node by: address, login and workspace."""
    return node.address, node.connection or node.ssh.model_dump_json(), node.workspace
