"""GitHub clients from Airflow connections."""

from functools import partial

from tipcflow.config.repository import Repository
from tipcflow.domain import ConfigError
from tipcflow.github.client import Client, connect


def app_of(connection: str) -> tuple[str, str]:
    """(App id, private key in PEM form) of an Airflow connection.

    Raises:
        ConfigError: the connection or a part of it is missing.
    """
    from airflow.sdk import Connection
    from airflow.sdk.exceptions import AirflowException

    wrong = partial(ConfigError, key=connection, hint="see docs/reference/github.md, Repositories")
    try:
        airflow_connection = Connection.get(connection)
    except AirflowException as error:
        raise wrong("Airflow has no such connection") from error
    key = str(airflow_connection.extra_dejson.get("private_key") or "")
    if not airflow_connection.login or not key:
        raise wrong("the connection lacks the App id (login) or the extra field private_key")
    return airflow_connection.login, key


class Connected:
    """One client per repository, made on first use and kept for this task."""

    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}

    def __call__(self, repository: Repository) -> Client:
        """The client of a repository.

        Raises:
            ConfigError, InfraError: as `app_of` and `connect`.
        """
        if repository.name not in self._clients:
            self._clients[repository.name] = connect(repository, *app_of(repository.connection))
        return self._clients[repository.name]
