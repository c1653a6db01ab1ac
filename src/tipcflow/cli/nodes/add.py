"""`tipcflow nodes add HOST`: makes a host a node of a cluster."""

import re
import socket
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tipcflow.domain import Cluster, ConfigError, InfraError, Node, SshTarget, Status, exit_code

if TYPE_CHECKING:
    from tipcflow.cli.nodes.host import Host
    from tipcflow.config.settings import Settings
    from tipcflow.transport.login import HostKey

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def add(
    context: typer.Context,
    host: Annotated[str, typer.Argument(help="Host name or IP address.")],
    user: Annotated[str, typer.Option("--user", "-u", help="Login name. Default: the current user.")] = "",
    port: Annotated[int, typer.Option("--port", "-p", min=1, max=65535, help="Port of the host's sshd.")] = 22,
    cluster: Annotated[
        str, typer.Option("--cluster", "-c", help="Cluster in configs/clusters; created if missing.")
    ] = "",
    accept: Annotated[
        str, typer.Option("--accept-fingerprint", metavar="SHA256:…", help="Expected host key. Default: prompt.")
    ] = "",
    identity: Annotated[
        Path | None,
        typer.Option("--identity-file", "-i", help="Private key. Default: the agent's and the default keys."),
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the node. Default: the host's own name.")] = "",
    address: Annotated[str, typer.Option(help="IP address for the other nodes. Default: that of HOST.")] = "",
    device: Annotated[
        Literal["cpu", "gpu"] | None, typer.Option(help="Type of slots. Default: gpu if the host has GPUs.")
    ] = None,
    slots: Annotated[
        int, typer.Option(min=0, max=1024, help="Slots per run (GPUs or CPU processes). 0: automatic.")
    ] = 0,
    python: Annotated[
        str, typer.Option(help="Interpreter of an environment on the host. Default: CPU PaddlePaddle, installed.")
    ] = "",
    workspace: Annotated[str, typer.Option(help="Folder on the host that belongs to tipcflow alone.")] = "",
    airflow_key_file: Annotated[
        str, typer.Option(help="Path of the private key where the Airflow of TIPCFLOW_AIRFLOW_URL runs.")
    ] = "",
) -> None:
    """Check a host, install the nodes' environment on it, and add it to a cluster file.

    Nothing is written before the host key is accepted and the login succeeds. Exit code 5 if a check fails.
    """
    from tipcflow.cli.nodes import cluster_text
    from tipcflow.config.settings import settings

    chosen = settings()
    _check_options(python, workspace, identity, airflow_key_file)
    file = _cluster_file(cluster or context.obj or "lab", chosen.config_dir)
    known = cluster_text.known_cluster(file)
    draft = _draft(host, user, port, identity, address)
    key = _accepted_key(draft, accept)
    with tempfile.TemporaryDirectory() as folder:
        trusted = Path(folder, "known_hosts")
        trusted.write_text(key.line)
        node = _set_up(
            draft, trusted, known, file, _Wanted(name, device or "", slots, python, workspace), chosen.home
        )
    keys = file.with_suffix(".known_hosts")
    node = node.model_copy(update={"ssh": node.ssh.model_copy(update={"known_hosts": str(keys)})})
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    text = cluster_text.with_node(before, file.stem, node, file=str(file))
    _remember(keys, key)
    cluster_text.write(file, text)
    typer.echo(f"node {node.name} added to {file}")
    raise typer.Exit(_finish(file.stem, node, chosen, airflow_key_file))


class _Wanted:
    def __init__(self, name: str, device: str, slots: int, python: str, workspace: str) -> None:
        self.name, self.device, self.slots, self.python, self.workspace = name, device, slots, python, workspace


def _check_options(python: str, workspace: str, identity: Path | None, key_file: str) -> None:
    for option, value in (("--python", python), ("--workspace", workspace), ("--airflow-key-file", key_file)):
        if value and not value.startswith("/"):
            raise ConfigError("not an absolute path on the host", key=option, found=value, expected="/…")
    if identity is not None and not identity.expanduser().is_file():
        raise ConfigError("no such key file", key="--identity-file", found=str(identity), expected="a private key")


def _cluster_file(name: str, config_dir: Path) -> Path:
    if not _NAME.fullmatch(name) or name in ("example", "local"):
        raise ConfigError(
            "cannot be the cluster of a host",
            key="--cluster",
            found=name,
            expected="letters, digits, '_' and '-'; not `example`, the template, or `local`, of `local up`",
        )
    return (config_dir / "clusters" / f"{name}.yaml").resolve()


def _draft(host: str, user: str, port: int, identity: Path | None, address: str) -> Node:
    """The node as far as the options describe it.

    Raises:
        InfraError: the host name is unknown.
    """
    import getpass

    try:
        resolved = address or str(socket.getaddrinfo(host, port, socket.AF_INET)[0][4][0])
    except OSError as error:
        raise InfraError(
            f"the host name {host} is unknown: {error.strerror}", hint="check it, or use an IP"
        ) from error
    ssh = SshTarget(
        host=host,
        port=port,
        user=user or getpass.getuser(),
        identity_file=str(identity.expanduser().resolve()) if identity else "",
    )
    return Node(name=_as_name(host), address=resolved, ssh=ssh, python="/unknown", workspace="/unknown")


def _as_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", text).strip("-._")[:63] or "node"


def _accepted_key(node: Node, accept: str) -> "HostKey":
    """The host's key, once the user has accepted it.

    Raises:
        ConfigError: the user rejects the key, the node has another key, or no terminal is available for a prompt.
    """
    from tipcflow.transport.login import read_host_key

    key = read_host_key(node)
    where = f"{node.ssh.host} port {node.ssh.port}"
    typer.echo(f"host key of {where}: {key.kind} {key.fingerprint}", err=True)
    if accept:
        if key.fingerprint != accept.strip():
            raise ConfigError(
                f"{where} has another host key",
                key="--accept-fingerprint",
                found=key.fingerprint,
                expected=accept,
                hint="find out why before you accept it: it may be another machine",
            )
        return key
    compare = (
        f"on the host: ssh-keygen -lf /etc/ssh/ssh_host_{key.kind.removeprefix('ssh-').split('-')[0]}_key.pub"
    )
    if not sys.stdin.isatty():
        raise ConfigError(
            "the host key is not accepted",
            key="--accept-fingerprint",
            expected=key.fingerprint,
            hint=f"compare it ({compare}), then pass it",
        )
    typer.echo(f"compare it {compare}", err=True)
    if not typer.confirm("Is it the same?", default=False, err=True):
        raise ConfigError("the host key was refused; nothing was changed", key=node.ssh.host)
    return key


def _set_up(draft: Node, trusted: Path, known: Cluster | None, file: Path, wanted: _Wanted, home: Path) -> Node:
    """Log in, choose the node's values, and install its environment. Returns: the node."""
    from tipcflow.cli.nodes.cluster_text import check_new
    from tipcflow.cli.nodes.host import check_installable, install_environment, survey
    from tipcflow.transport.connect import connect

    ssh = draft.ssh.model_copy(update={"known_hosts": str(trusted)})
    transport = connect(draft.model_copy(update={"ssh": ssh}))
    try:
        host = survey(transport, draft.ssh.host)
        node = _described(draft, host, wanted)
        check_new(known, node, file)
        typer.echo(f"login as {ssh.user}: {host.system} {host.arch}, {host.cpus} CPUs, {host.gpus} GPUs", err=True)
        if not wanted.python:
            from tipcflow.install.uv import require_uv, requirements_dir

            check_installable(host, node.name, node.device)
            install_environment(
                transport,
                node,
                host,
                uv=require_uv(home, _note),
                requirements=requirements_dir() / "node-cpu.txt",
                report=_note,
            )
    finally:
        transport.close()
    return node


def _described(draft: Node, host: "Host", wanted: _Wanted) -> Node:
    device = wanted.device or ("gpu" if host.gpus else "cpu")
    name = wanted.name or _as_name(host.hostname or draft.ssh.host)
    workspace = wanted.workspace or host.workspace
    values = draft.model_dump() | {
        "name": name,
        "connection": f"tipcflow_{re.sub(r'[^A-Za-z0-9]', '_', name).lower()}",
        "device": device,
        "slots": wanted.slots or (host.gpus if device == "gpu" else min(2, host.cpus)) or 1,
        "workspace": workspace,
        "python": wanted.python or f"{workspace}/envs/node-cpu/bin/python",
        # What another interpreter has is for the user to declare.
        "frameworks": None if wanted.python else ("paddlepaddle",),
    }
    return Node.model_validate(values)


def _remember(file: Path, key: "HostKey") -> None:
    """Add the accepted key to the cluster's known_hosts file, instead of earlier keys of the host."""
    from tipcflow.cli.nodes.cluster_text import write

    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    write(file, "".join([*(line for line in lines if line.split(" ", 1)[0] != key.name), key.line]))


def _finish(cluster: str, node: Node, chosen: "Settings", key_file: str) -> int:
    """Create the Airflow connection and check the cluster's nodes. Returns: the exit code."""
    from tipcflow.cli.doctor.command import print_findings
    from tipcflow.cli.doctor.nodes import check_nodes
    from tipcflow.cli.nodes.airflow import add_connection

    connected = add_connection(node, cluster, key_file)
    findings = check_nodes(cluster, chosen.config_dir)
    missing = sum(not finding.ok for finding in findings)
    print_findings(findings, missing)
    if missing:
        return exit_code(Status.INFRA_FAILURE)
    return 0 if connected else exit_code(Status.CONFIG_ERROR)


def _note(line: str) -> None:
    typer.echo(line, err=True)
