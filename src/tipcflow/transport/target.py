"""Resolve a node's SSH address and login: the cluster file over the user's OpenSSH configuration."""

import getpass
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import paramiko

from tipcflow.domain import InfraError, Node

DEFAULT_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts")


@dataclass(frozen=True)
class Target:
    """A resolved address.

    Attributes:
        identity_files: keys to try first; empty: the agent's and the default keys.
        agent: whether the agent's and the default keys may be tried.
        known_hosts: files with known host keys.
        key_name: name of the host key in these files.
        proxy: command whose stdin and stdout are the connection, '' for TCP.
        connection: ID of the Airflow connection from which all of this is; '' for the cluster file.
        host_key: of the connection, instead of those in `known_hosts`.
        password, private_key: of the connection.
    """

    host: str
    port: int
    user: str
    identity_files: tuple[str, ...]
    agent: bool
    known_hosts: tuple[str, ...]
    key_name: str
    proxy: str
    connection: str = ""
    host_key: paramiko.PKey | None = field(default=None, repr=False)
    password: str = field(default="", repr=False)
    private_key: paramiko.PKey | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"


def resolve(node: Node, *, config_file: Path | None = None) -> Target:
    """Resolve the node's `ssh` setting. The OpenSSH configuration is read only if there is an `alias`.

    Args:
        config_file: replaces the user's `~/.ssh/config`.

    Raises:
        InfraError: the configuration is unreadable, or a key file is missing.
    """
    ssh = node.ssh
    config = _lookup(node, config_file or Path("~/.ssh/config").expanduser()) if ssh.alias else {}
    host = ssh.host or str(config.get("hostname", "")) or ssh.alias or node.address
    port = ssh.port or int(config.get("port", 22))
    user = ssh.user or str(config.get("user", "")) or getpass.getuser()
    keys = [ssh.identity_file] if ssh.identity_file else list(config.get("identityfile", []))
    key_files = [str(Path(key).expanduser()) for key in keys]
    if ssh.identity_file and not Path(key_files[0]).is_file():
        raise InfraError.of_node(
            node.name,
            f"key file not found: {ssh.identity_file}",
            hint="set ssh.identity_file of the node in the cluster file",
        )
    known = [ssh.known_hosts] if ssh.known_hosts else shlex.split(str(config.get("userknownhostsfile", "")))
    return Target(
        host=host,
        port=port,
        user=user,
        identity_files=tuple(key for key in key_files if Path(key).is_file()),
        agent=str(config.get("identitiesonly", "no")).lower() != "yes",
        known_hosts=tuple(str(Path(file).expanduser()) for file in known or DEFAULT_KNOWN_HOSTS),
        key_name=str(config.get("hostkeyalias", "")) or (host if port == 22 else f"[{host}]:{port}"),
        proxy=_proxy(config, host, port),
    )


def _lookup(node: Node, file: Path) -> dict[str, Any]:
    """Return the alias's settings; the cluster file takes precedence, also for %h and %p of the proxy command."""
    ssh = node.ssh
    ours = {"HostName": ssh.host, "Port": ssh.port, "User": ssh.user}
    first = "Host *\n" + "".join(f"  {key} {value}\n" for key, value in ours.items() if value)
    try:
        text = file.read_text() if file.exists() else ""
        return dict(paramiko.SSHConfig.from_text(first + text).lookup(ssh.alias))
    except (OSError, ValueError, paramiko.ConfigParseError, ImportError) as error:
        raise InfraError.of_node(node.name, f"cannot read {file}: {error}") from error


def _proxy(config: dict[str, Any], host: str, port: int) -> str:
    """Return the proxy command; a jump host is converted to one that uses the OpenSSH client."""
    command, jump = str(config.get("proxycommand", "")), str(config.get("proxyjump", ""))
    if command and command.lower() != "none":
        return command
    if not jump or jump.lower() == "none":
        return ""
    *before, last = jump.split(",")
    words = ["ssh", "-o", "BatchMode=yes", *(["-J", ",".join(before)] if before else []), "-W", f"[{host}]:{port}"]
    return shlex.join([*words, last])
