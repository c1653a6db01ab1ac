"""Airflow connections of nodes in a file, for tasks and triggers: programs of tasks can read an environment."""

import json

from airflow.secrets.base_secrets import BaseSecretsBackend

from tipcflow.config.settings import settings


class NodeConnections(BaseSecretsBackend):
    """A secrets backend for `[workers] secrets_backend`: the connections of the file TIPCFLOW_CONNECTIONS_FILE.

    Airflow's LocalFilesystemBackend makes objects of its database: 0.5 s of CPU in the process of each task, and a
    warning in its log where the Fernet key is missing, as on workers.
    """

    def get_conn_value(self, conn_id: str, team_name: str | None = None) -> str | None:
        """The connection as JSON or as a URI, as in the file; None if the file lacks it.

        Raises:
            OSError, ValueError: the file is unreadable or not JSON; Airflow then reads its other backends.
        """
        path = settings().connections_file
        if path is None:
            return None
        entry = json.loads(path.read_text(encoding="utf-8")).get(conn_id)
        return entry if entry is None or isinstance(entry, str) else json.dumps(entry)

    def get_variable(self, key: str, team_name: str | None = None) -> str | None:
        """None: the file has no variables."""
        return None
