"""Connections of clusters' nodes in the local Airflow that is running, by its REST API."""

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path

from devcluster.keep.record import read
from tipcflow.airflow_api import Airflow
from tipcflow.airflow_api.node_connections import connection_of
from tipcflow.domain import Cluster, ConfigError, TipcflowError

DEADLINE_S = 30.0


def running_airflow(home: Path) -> Airflow | None:
    """A client of the Airflow that `tipcflow airflow up` started in this home; None if it is not running."""
    record = read(home, "airflow")
    if record is None or record.condition != "running":
        return None
    try:
        passwords = json.loads(Path(record.facts["passwords_file"]).read_text())
        user = record.facts["user"]
        return Airflow(record.facts["url"], user=user, password=passwords[user], deadline_s=DEADLINE_S)
    except (OSError, ValueError, KeyError):
        return None


def connect_nodes(airflow: Airflow, clusters: Iterable[Cluster]) -> tuple[list[str], list[str]]:
    """Create or replace the connections of all nodes with an ssh host.

    Returns: ids of the connections, and one sentence per node that cannot have one.

    Raises:
        InfraError: Airflow does not respond.
    """
    made, refused = [], []
    for cluster in clusters:
        for node in cluster.nodes:
            if not node.ssh.host:
                continue  # an alias of ssh, or a connection that the deployment itself creates
            try:
                airflow.put_connection(node.connection, connection_of(node))
                made.append(node.connection)
            except ConfigError as error:
                refused.append(f"cluster {cluster.name}, node {node.name}: no connection: {error.message}")
    return made, refused


def disconnect_nodes(airflow: Airflow, ids: Iterable[str]) -> None:
    """Remove connections; an Airflow that does not respond keeps them."""
    for identity in ids:
        with contextlib.suppress(TipcflowError):
            airflow.remove_connection(identity)
