"""Clusters: `configs/clusters/<name>.yaml`, and whether their nodes have the framework of a suite."""

import os
import re
from pathlib import Path
from typing import Literal

from packaging.requirements import InvalidRequirement, Requirement
from pydantic import Field, field_validator, model_validator

from tipcflow.config.base import ConfigModel
from tipcflow.config.loader import load_yaml
from tipcflow.config.repository import line_of
from tipcflow.config.suite import Suite, find_config
from tipcflow.config.yaml_text.strict import read_yaml
from tipcflow.domain.errors import ConfigError
from tipcflow.domain.node import (
    NODE,
    Cluster,
    Launch,
    Node,
    NodeSettings,
    SlurmSource,
    SlurmStep,
    SshTarget,
)

# A value of an option of sbatch: one word that is not an option itself.
_WORD = r"^([A-Za-z0-9_.][^\s\x00-\x1f]*)?$"
# Constraints have brackets, and operators between features.
_FEATURES = r"^([A-Za-z0-9_.(\[][^\s\x00-\x1f]*)?$"
# An environment variable in an address, with or without a default, as in docker-compose.yaml.
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^{}]*))?\}")


class LoginNode(ConfigModel):
    """The host with Slurm's commands.

    Attributes:
        local: whether it is this machine.
        connection: the Airflow connection ID; the CLI uses `ssh` instead.
        ssh: how the CLI reaches it.
    """

    local: bool = False
    connection: str = ""
    ssh: SshTarget | None = None

    @model_validator(mode="after")
    def _reachable(self) -> "LoginNode":
        if self.local and (self.ssh or self.connection):
            raise ValueError("a local login node has neither `ssh` nor `connection`")
        if not (self.local or self.ssh or self.connection):
            raise ValueError("needs `local: true`, `ssh` or `connection`")
        if self.ssh and not (self.ssh.alias or self.ssh.host):
            raise ValueError("`ssh` of a login node needs `alias` or `host`")
        return self


class AllocatedNode(NodeSettings):
    """What tipcflow uses on every node of the allocation; `{node}` is the node's name."""

    @field_validator("workspace")
    @classmethod
    def _own(cls, workspace: str) -> str:
        # Nodes of a Slurm cluster usually share file systems, and each needs a workspace of its own.
        if NODE not in workspace:
            raise ValueError(f"must contain {NODE}, because nodes may share a file system")
        return workspace


class SlurmClusterFile(ConfigModel):
    """A cluster file with `kind: slurm`.

    Attributes:
        nodes: maximum number of nodes of a run.
    """

    name: str
    kind: Literal["slurm"]
    launch: Launch | None = None
    probe: bool = True
    login: LoginNode
    partition: str = Field(default="", pattern=_WORD)
    constraint: str = Field(default="", pattern=_FEATURES)
    account: str = Field(default="", pattern=_WORD)
    qos: str = Field(default="", pattern=_WORD)
    gres: str = Field(default="", pattern=_WORD)
    nodes: int = Field(ge=1, le=1024)
    time_limit_minutes: int = Field(ge=1)
    node: AllocatedNode

    def cluster(self) -> Cluster:
        """Return the cluster with a placeholder for each node that may be allocated."""
        source = SlurmSource(
            local=self.login.local,
            partition=self.partition,
            constraint=self.constraint,
            account=self.account,
            qos=self.qos,
            gres=self.gres,
            time_limit_minutes=self.time_limit_minutes,
            workspace=self.node.workspace,
            cache=self.node.cache,
        )
        nodes = tuple(self._placeholder(f"slurm-{number}") for number in range(1, self.nodes + 1))
        return Cluster(
            name=self.name, kind="slurm", launch=self.launch, probe=self.probe, slurm=source, nodes=nodes
        )

    def _placeholder(self, name: str) -> Node:
        settings = {field: getattr(self.node, field) for field in NodeSettings.model_fields}
        step = SlurmStep(local=self.login.local, gres=self.gres)
        return Node(
            **settings,
            name=name,
            address=name,
            connection=self.login.connection,
            ssh=self.login.ssh or SshTarget(),
            slurm=step,
        )


def load_cluster(name: str, config_dir: Path) -> Cluster:
    """The cluster of that name (or of that YAML file).

    Addresses may contain environment variables: `${NODE_NETWORK}`, or with a default `${NODE_NETWORK:-10.213.77}`.

    Raises:
        ConfigError: the cluster does not exist (the message lists known ones), its file is invalid or has another
            name, a variable is not set, or two nodes share a name or an address.
    """
    path = find_config(name, config_dir / "clusters", what="cluster")
    in_configs = path.resolve().parent == (config_dir / "clusters").resolve()
    if _kind(path) == "slurm":
        file = load_yaml(path, SlurmClusterFile)
        _refuse_other_name(file.name, path, is_named=in_configs)
        return file.cluster()
    cluster = load_yaml(path, Cluster)
    _refuse_other_name(cluster.name, path, is_named=in_configs)
    cluster = _with_variables(cluster, path)
    _refuse_slurm_keys(cluster, path)
    for what in ("name", "address"):
        _refuse_duplicate(cluster, what, path)
    return cluster


def _refuse_other_name(name: str, path: Path, *, is_named: bool) -> None:
    """Refuse a name that `--cluster` would not find: runs store the name, and later commands look for its file.

    Args:
        is_named: whether the file is in the configuration folder; other files may have any name.
    """
    if is_named and name != path.stem:
        raise ConfigError(
            "is not the name of the file",
            file=str(path),
            line=line_of(path, "name"),
            key="name",
            found=name,
            expected=path.stem,
        )


def unset_variables(name: str, config_dir: Path) -> tuple[str, ...]:
    """Return the variables in the addresses of a cluster's nodes that are not set, so that their defaults apply.

    Raises:
        ConfigError: the cluster does not exist, or its file is not YAML.
    """
    path = find_config(name, config_dir / "clusters", what="cluster")
    data, _ = read_yaml(path.read_text(encoding="utf-8"), file=str(path))
    nodes = data.get("nodes") if isinstance(data, dict) else None
    entries = nodes if isinstance(nodes, list) else []
    addresses = [str(node.get("address")) for node in entries if isinstance(node, dict)]
    names = [match[1] for address in addresses for match in _VARIABLE.finditer(address)]
    return tuple(dict.fromkeys(name for name in names if not os.environ.get(name)))


def _refuse_duplicate(cluster: Cluster, what: str, path: Path) -> None:
    """Refuse the first node that has the name or address of an earlier one."""
    first: dict[str, int] = {}
    for index, node in enumerate(cluster.nodes):
        value = getattr(node, what)
        if (earlier := first.setdefault(value, index)) != index:
            other = f"nodes.{earlier}" if what == "name" else f"node {cluster.nodes[earlier].name}"
            raise ConfigError(
                f"{other} has the same {what}",
                file=str(path),
                line=line_of(path, "nodes", index, what),
                key=f"nodes.{index}.{what}",
                found=value,
                expected=f"each {what} once",
            )


def _with_variables(cluster: Cluster, path: Path) -> Cluster:
    """Replace environment variables in the addresses of nodes."""

    nodes = [
        node.model_copy(update={"address": _replaced(node.address, path, index)}) if "$" in node.address else node
        for index, node in enumerate(cluster.nodes)
    ]
    return cluster.model_copy(update={"nodes": tuple(nodes)})


def _replaced(address: str, path: Path, index: int) -> str:
    """Return the address of a node with the values of variables, each set or with a default."""

    def value(match: re.Match[str]) -> str:
        """Return the variable's value or its default."""
        name, default = match.groups()
        text = os.environ.get(name) or default
        if not text:
            raise ConfigError(
                "variable is not set",
                file=str(path),
                line=line_of(path, "nodes", index, "address"),
                key=f"nodes.{index}.address",
                found=match[0],
                expected=f"the environment variable {name}, or a default: ${{{name}:-DEFAULT}}",
            )
        return text

    return _VARIABLE.sub(value, address)


def _kind(path: Path) -> object:
    """Return the value of the file's key `kind`; None for an unreadable file, which `load_yaml` reports."""
    try:
        data, _ = read_yaml(path.read_text(encoding="utf-8"), file=str(path))
    except (OSError, UnicodeDecodeError):
        return None
    return data.get("kind") if isinstance(data, dict) else None


def _refuse_slurm_keys(cluster: Cluster, path: Path) -> None:
    """Refuse what only an allocation sets, in the file of an inventory."""
    key = "slurm" if cluster.slurm else "nodes.slurm" if any(node.slurm for node in cluster.nodes) else ""
    if key:
        raise ConfigError("unknown key", file=str(path), key=key, expected="`kind: slurm` for nodes from Slurm")


def missing_framework(suite: Suite, cluster: Cluster, *, requested: str = "") -> str:
    """Return why the suite's chains cannot run on the cluster; '' if they can, or if nothing is declared.

    Args:
        requested: framework requirement of the run; a release of the suite's framework that it pins is installed.
    """
    nodes = cluster.without_framework(suite.framework)
    if not nodes or _is_pinned(suite.framework, requested):
        return ""
    if len(nodes) == len(cluster.nodes):
        return f"cluster {cluster.name} has no {suite.framework}"
    return f"node {', '.join(nodes)} of cluster {cluster.name} has no {suite.framework}"


def require_framework(suite: Suite, cluster: Cluster, *, requested: str = "") -> None:
    """Refuse a suite whose framework the cluster does not have.

    Raises:
        ConfigError: `missing_framework` has a reason.
    """
    why = missing_framework(suite, cluster, requested=requested)
    if not why:
        return
    raise ConfigError(
        f"suite {suite.name} needs {suite.framework}",
        key="--cluster",
        found=why,
        expected=f"a cluster with {suite.framework}",
        hint="`frameworks` of a node in the cluster file lists what its environment has",
    )


def _is_pinned(framework: str, requested: str) -> bool:
    """Whether a requirement makes the run install a release of the framework, as in `torch==2.13.0`."""
    try:
        requirement = Requirement(requested)
    except InvalidRequirement:
        return False
    pins = list(requirement.specifier)
    is_one = len(pins) == 1 and pins[0].operator == "==" and not pins[0].version.endswith(".*")
    return is_one and requirement.name.lower().removesuffix("-gpu") == framework
