"""Airflow's own REST API, for what a task cannot do otherwise; where there is a connection for it."""

from tipcflow.airflow_api import Airflow

# An HTTP connection with host, login and password of a user who may edit DAG runs.
CONNECTION = "tipcflow_airflow_api"


def api() -> Airflow | None:
    """A client, None when there is no connection of that name."""
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowException

    try:
        connection = Connection.get(CONNECTION)
    except AirflowException:
        return None
    scheme = connection.schema or "http"
    port = f":{connection.port}" if connection.port else ""
    return Airflow(
        f"{scheme}://{connection.host}{port}", user=connection.login or "", password=connection.password or ""
    )
