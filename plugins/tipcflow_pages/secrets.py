"""Secrets of the routes without a login: the passwords of Airflow connections."""


def connection_password(name: str) -> bytes | None:
    """Return the password of an Airflow connection, empty if it has none; None if there is no such connection."""
    from airflow.sdk.exceptions import AirflowNotFoundException

    from tipcflow_operators.airflow.internals import Connection

    try:
        connection = Connection.get_connection_from_secrets(name)
    except AirflowNotFoundException:
        return None
    return (connection.password or "").encode()
