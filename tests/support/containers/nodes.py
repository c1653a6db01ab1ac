"""Nodes that are containers of a real engine: docker's entrypoint and SSH server, without docker/node.Dockerfile.

The Dockerfile needs a registry and a network. Here the image has its files and its user; the programs and Paddle's
environment are those of this machine, mounted.
"""

import base64
import io
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml
from tests.support.containers import engine

from tipcflow.domain import Cluster

ROOT = Path(__file__).parents[3]
IMAGE = "tipcflow-node-test:1"
NETWORK, SUBNET = "tipcflow-nodes", "10.213.77.0/24"
# As docker/node.Dockerfile makes it.
USER_ID = 1000
_USERS = (
    "root:x:0:0:root:/root:/bin/bash\n"
    "sshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"
    f"tipcflow:x:{USER_ID}:{USER_ID}::/home/tipcflow:/bin/bash\n"
)
_SHADOW = "root:*:20000:0:99999:7:::\nsshd:!:20000::::::\ntipcflow:*:20000:0:99999:7:::\n"
_GROUPS = f"root:x:0:\nnogroup:x:65534:\ntipcflow:x:{USER_ID}:\n"
_FOLDERS = {
    "home/tipcflow": USER_ID,
    "var/lib/tipcflow": USER_ID,
    "run/sshd": 0,
    "tmp": 0,
    "usr": 0,
    "opt/tipcflow": 0,
}


class NodeContainers:
    """Running nodes; `cluster` is that of docker-compose.yaml, with SSH targets."""

    def __init__(self, docker: Path, cluster: Cluster) -> None:
        self.docker, self.cluster = docker, cluster

    def write_cluster_file(self, path: Path) -> Path:
        data = {**self.cluster.model_dump(mode="json", exclude_defaults=True), "name": path.stem}
        path.write_text(yaml.safe_dump(data, sort_keys=False))
        return path

    def processes(self, name: str) -> list[str]:
        """The command lines in a container, except those of its SSH server."""
        words = [self.docker, "exec", name, "ps", "-eo", "args="]
        listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
        return [line for line in listed if "sshd" not in line and not line.startswith("ps ")]


@contextmanager
def node_containers(docker: Path, folder: Path, python: Path) -> Iterator[NodeContainers]:
    """Run the two nodes of docker-compose.yaml on one network of this host.

    Args:
        folder: for keys and the list of known hosts.
        python: interpreter of the nodes' environment.
    """
    folder.mkdir()
    env = _keys(folder)
    _call(docker, "import", "-c", 'ENTRYPOINT ["/opt/tipcflow/node_entrypoint.sh"]', "-", IMAGE, data=_image())
    _call(docker, "network", "create", "--subnet", SUBNET, NETWORK)
    cluster = yaml.safe_load((ROOT / "configs" / "clusters" / "compose.yaml").read_text())
    try:
        for number, node in enumerate(cluster["nodes"], start=1):
            _start(docker, node, env, f"NODE_{number}", python)
            node["ssh"] = {
                "host": node["address"],
                "user": "tipcflow",
                "identity_file": str(folder / "id"),
                "known_hosts": str(folder / "known_hosts"),
            }
        nodes = NodeContainers(docker, Cluster.model_validate(cluster))
        _wait(nodes, folder)
        yield nodes
    finally:
        for node in cluster["nodes"]:
            subprocess.run([docker, "rm", "-f", node["name"]], capture_output=True, check=False)
        subprocess.run([docker, "network", "rm", NETWORK], capture_output=True, check=False)


def _keys(folder: Path) -> Mapping[str, str]:
    """The secrets that docker/env.sh generates; the login's key and the hosts' keys as files."""
    subprocess.run([ROOT / "docker" / "env.sh", folder / ".env"], check=True, capture_output=True, timeout=60)
    env = dict(line.split("=", 1) for line in (folder / ".env").read_text().splitlines())
    key = folder / "id"
    key.touch(mode=0o600)
    key.write_bytes(base64.b64decode(env["NODE_LOGIN_KEY"]))
    hosts = [f"10.213.77.1{number} {env[f'NODE_{number}_HOST_KEY_PUB']}\n" for number in (1, 2)]
    (folder / "known_hosts").write_text("".join(hosts))
    return env


def _start(docker: Path, node: Mapping[str, str], env: Mapping[str, str], key: str, python: Path) -> None:
    environment = f"{python.parents[1]}:{Path(node['python']).parents[1]}:ro"
    keys = {"NODE_HOST_KEY": env[f"{key}_HOST_KEY"], "NODE_LOGIN_KEY_PUB": env["NODE_LOGIN_KEY_PUB"]}
    words = ["run", "-d", "--name", node["name"], "--hostname", node["name"], "--shm-size=1g"]
    words += ["--network", NETWORK, "--ip", node["address"], *(word for name in keys for word in ("-e", name))]
    for mount in (f"{sys.base_prefix}:{sys.base_prefix}:ro", "/usr:/usr:ro", environment):
        words += ["-v", mount]
    _call(docker, *words, IMAGE, env={**os.environ, **keys})


def _wait(nodes: NodeContainers, folder: Path) -> None:
    options = ["-F", "none", "-i", str(folder / "id"), "-o", f"UserKnownHostsFile={folder}/known_hosts"]
    for node in nodes.cluster.nodes:
        words = [
            "ssh",
            *options,
            "-o",
            "BatchMode=yes",
            "-o",
            "ConnectTimeout=5",
            f"tipcflow@{node.address}",
            "true",
        ]
        deadline = time.monotonic() + engine.WAIT_S
        while (done := subprocess.run(words, capture_output=True, text=True, check=False)).returncode:
            log = subprocess.run([nodes.docker, "logs", node.name], capture_output=True, text=True, check=False)
            assert time.monotonic() < deadline, done.stderr + log.stdout + log.stderr
            time.sleep(0.3)


def _call(docker: Path, *words: str, data: bytes | None = None, env: Mapping[str, str] | None = None) -> None:
    done = subprocess.run([docker, *words], input=data, capture_output=True, check=False, env=env)
    assert done.returncode == 0, done.stderr.decode()


def _image() -> bytes:
    """The files that docker/node.Dockerfile adds, and links to the mounted programs."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, owner in _FOLDERS.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.uid, entry.gid = tarfile.DIRTYPE, owner, owner
            entry.mode = 0o1777 if name == "tmp" else 0o755
            tar.addfile(entry)
        for name in ("bin", "sbin", "lib", "lib64"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(link)
        texts = {"etc/passwd": _USERS, "etc/shadow": _SHADOW, "etc/group": _GROUPS, "etc/marker": engine.MARKER}
        texts["etc/tipcflow/sshd_config"] = (ROOT / "docker" / "sshd_config").read_text()
        texts["opt/tipcflow/node_entrypoint.sh"] = (ROOT / "docker" / "node_entrypoint.sh").read_text()
        for name, text in texts.items():
            file = tarfile.TarInfo(name)
            file.size, file.mode = len(text), 0o600 if name == "etc/shadow" else 0o755
            tar.addfile(file, io.BytesIO(text.encode()))
    return made.getvalue()
