"""A cluster's nodes as Airflow connections, in the environment of Airflow's components."""

import json
from pathlib import Path

from tipcflow.domain import Cluster, ConfigError, Node


def connections_env(cluster: Cluster) -> dict[str, str]:
    """`AIRFLOW_CONN_<ID>` for every node with an ssh target: where it is, with which key, and its host key.

    The private key stays in its file; the host key is checked by both of the SSH provider's hooks.

    Raises:
        ConfigError: a node has no connection id, no ssh target or no known host key.
    """
    return {f"AIRFLOW_CONN_{node.connection.upper()}": json.dumps(_connection(node)) for node in cluster.nodes}


def _connection(node: Node) -> dict[str, object]:
    if not node.connection:
        raise ConfigError("no id for the connection", key=f"nodes.{node.name}.connection")
    if not node.ssh.host:
        raise ConfigError("no host to make a connection to", key=f"nodes.{node.name}.ssh.host")
    return {
        "conn_type": "ssh",
        "host": node.ssh.host,
        "port": node.ssh.port,
        "login": node.ssh.user,
        "extra": {
            "key_file": node.ssh.identity_file,
            "host_key": _host_key(node),
            "no_host_key_check": "false",
            # Neither the user's own keys nor an agent's: what this connection says, or nothing.
            "look_for_keys": "false",
        },
    }


def _host_key(node: Node) -> str:
    """`<type> <base64>` of the node, out of its known_hosts file."""
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
        "its host key is not known", key=f"nodes.{node.name}.ssh.known_hosts", found=str(path), expected="its line"
    )
