"""The Airflow connection of a new node: in the local Airflow, or in the one that TIPCFLOW_AIRFLOW_URL names."""

import typer

from tipcflow.domain import Cluster, ConfigError, Node


def add_connection(node: Node, cluster: str, key_file: str) -> bool:
    """Create the connection, or print what it must contain.

    The private key never leaves this machine: the connection names a file where Airflow runs.

    Args:
        key_file: the private key's path on the machine that runs Airflow, '' if unknown.

    Returns:
        whether the connection exists, or could not be expected to.

    Raises:
        InfraError: Airflow does not respond.
    """
    from tipcflow.cli.local.running import connect, local_airflow
    from tipcflow.config.airflow_login import airflow_url

    if airflow_url():
        return _elsewhere(node, key_file)
    airflow = local_airflow()
    if airflow is None:
        typer.echo(
            f"any other Airflow needs the connection {node.connection}: type SSH, host {node.ssh.host}, port "
            f"{node.ssh.port}, login {node.ssh.user}, with private_key and host_key in its extra field; with "
            "TIPCFLOW_AIRFLOW_URL and a login this command creates it"
        )
        return True
    with airflow:
        made, refused = connect(airflow, Cluster(name=cluster, nodes=(node,)))
    for line in refused:
        typer.echo(line, err=True)
    if made:
        typer.echo(f"connection {made[0]} in the local Airflow")
    return True


def _elsewhere(node: Node, key_file: str) -> bool:
    from tipcflow.airflow_api import Airflow
    from tipcflow.airflow_api.node_connections import connection_of
    from tipcflow.config.airflow_login import airflow_login, airflow_url

    connection = connection_of(node)
    extra = dict(connection["extra"]) if isinstance(connection["extra"], dict) else {}
    del extra["key_file"]  # a path of this machine
    extra |= {"key_file": key_file} if key_file else {}
    try:
        login = airflow_login()
        with Airflow(login.url, user=login.user, password=login.password, token=login.token) as airflow:
            # An existing one may have a private key, which this one lacks without the key file.
            written = airflow.put_connection(
                node.connection, {**connection, "extra": extra}, replace=bool(key_file)
            )
    except ConfigError as error:
        typer.echo(f"no connection {node.connection} in Airflow at {airflow_url()}: {error.message}", err=True)
        return False
    if not written:
        typer.echo(
            f"connection {node.connection} exists in Airflow at {login.url} and was not changed: check its host, "
            "or replace it with --airflow-key-file"
        )
        return True
    typer.echo(f"connection {node.connection} in Airflow at {login.url}")
    if not key_file:
        typer.echo(
            "it has no private key yet: add private_key to its extra field in Airflow, or run the command again "
            "with --airflow-key-file, the key's path where Airflow runs"
        )
    return True
