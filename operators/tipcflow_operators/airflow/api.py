"""Client of Airflow's REST API for requests the task SDK does not offer; needs an optional connection."""

from tipcflow.airflow_api import Airflow

# HTTP connection: host, login and password of a user who may edit DAG runs.
CONNECTION = "tipcflow_airflow_api"


def api() -> Airflow | None:
    """Return a client, or None if the connection does not exist."""
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
