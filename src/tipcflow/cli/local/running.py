"""The Airflow of `tipcflow airflow up`, for commands that use it if it runs."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.config.airflow_login import airflow_url

if TYPE_CHECKING:
    from tipcflow.airflow_api import Airflow
    from tipcflow.domain import Cluster


def local_airflow() -> "Airflow | None":
    """The local Airflow; None if a variable names another, none runs, or only the base package is installed."""
    if airflow_url():
        return None
    try:
        from devcluster.keep.connect import running_airflow
        from tipcflow.config.settings import settings
    except ImportError:
        return None
    return running_airflow(settings().home)


def has_local_airflow() -> bool:
    """Whether `tipcflow airflow up` can start an Airflow: the extra that it needs is installed."""
    return find_spec("devcluster") is not None and find_spec("airflow") is not None


def local_home() -> Path | None:
    """TIPCFLOW_HOME of the local Airflow; None as for `local_airflow`."""
    if (airflow := local_airflow()) is None:
        return None
    from tipcflow.config.settings import settings

    airflow.close()
    return settings().home


def connect(airflow: "Airflow", cluster: "Cluster") -> tuple[list[str], list[str]]:
    """Create or replace the connections of a cluster's nodes.

    Returns: ids of the connections, and one line per node that cannot have one.

    Raises:
        InfraError: Airflow does not respond.
    """
    from devcluster.keep.connect import connect_nodes

    return connect_nodes(airflow, [cluster])
