"""Airflow connections of a cluster's nodes, as environment variables of Airflow's components."""

import json
from pathlib import Path

from tipcflow.domain import Cluster, ConfigError, Node


def connections_env(cluster: Cluster) -> dict[str, str]:
    """Return `AIRFLOW_CONN_<ID>` for every node with an ssh target: address, private key file and host key.

    The variables contain only the private key's path; both hooks of the SSH provider check the host key.

    Raises:
        ConfigError: a node has no connection ID, no ssh target or no known host key.
    """
    return {f"AIRFLOW_CONN_{node.connection.upper()}": json.dumps(connection_of(node)) for node in cluster.nodes}


def connection_of(node: Node) -> dict[str, object]:
    """Return the connection of a node with an ssh host, as a JSON object.

    Raises:
        ConfigError: the node has no connection ID, no ssh host or no known host key.
    """
    if not node.connection:
        raise ConfigError("no id for the connection", key=f"nodes.{node.name}.connection")
    if not node.ssh.host:
        raise ConfigError("the host is not set", key=f"nodes.{node.name}.ssh.host")
    return {
        "conn_type": "ssh",
        "host": node.ssh.host,
        "port": node.ssh.port,
        # With an empty login, triggers would log in as the user '', and tasks as the user of Airflow.
        **({"login": node.ssh.user} if node.ssh.user else {}),
        "extra": {
            "key_file": node.ssh.identity_file,
            "host_key": _host_key(node),
            "no_host_key_check": "false",
            # Only this connection's key: neither the user's own keys nor those of an agent.
            "look_for_keys": "false",
        },
    }


def _host_key(node: Node) -> str:
    """Return `<type> <base64>` of the node's host key from its known_hosts file."""
    names = {node.ssh.host, f"[{node.ssh.host}]:{node.ssh.port}"}
    path = Path(node.ssh.known_hosts or "")
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        lines = []
    for fields in lines:
        if len(fields) >= 3 and names & set(fields[0].split(",")):
            return f"{fields[1]} {fields[2]}"
    raise ConfigError(
        "no host key of the node", key=f"nodes.{node.name}.ssh.known_hosts", found=str(path), expected="its line"
    )
