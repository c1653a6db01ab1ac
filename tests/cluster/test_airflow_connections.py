"""Local nodes through both of the SSH provider's hooks: they are let in, and a changed host key is refused."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.airflow_api.node_connections import connections_env

pytestmark = pytest.mark.cluster

# Prints the result of each hook: the node's output, or the name of the error.
ASK = """
import asyncio, sys
from airflow.providers.ssh.hooks.ssh import SSHHook, SSHHookAsync

def sync(connection):
    with SSHHook(ssh_conn_id=connection, conn_retry_attempts=1).get_conn() as client:
        return client.exec_command("uname")[1].read().decode().strip()

async def deferred(connection):
    return (await SSHHookAsync(ssh_conn_id=connection).run_command("uname"))[1].strip()

for ask in (sync, lambda connection: asyncio.run(deferred(connection))):
    try:
        print("result:", ask(sys.argv[1]))
    except Exception as error:
        print("result:", type(error).__name__)
"""


def ask(nodes: LocalNodes, home: Path, name: str) -> list[str]:
    """Results of the synchronous and the asynchronous hook for a node."""
    env = os.environ | connections_env(nodes.cluster) | {"AIRFLOW_HOME": str(home), "HOME": str(home)}
    argv = [sys.executable, "-c", ASK, nodes.cluster.node(name).connection]
    done = subprocess.run(argv, env=env, cwd=home, capture_output=True, text=True, timeout=120, check=False)
    result = [line.removeprefix("result: ") for line in done.stdout.splitlines() if line.startswith("result: ")]
    assert len(result) == 2, done.stdout + done.stderr
    return result


@pytest.mark.parametrize("mode", ["namespaces", pytest.param("loopback", marks=pytest.mark.full)])
def test_both_hooks_are_let_in_and_refuse_a_changed_host_key(
    make_nodes: Callable[..., LocalNodes], tmp_path: Path, mode: str
) -> None:
    nodes = make_nodes(tmp_path / "home", mode=mode)
    home = tmp_path / "airflow"
    home.mkdir()
    assert ask(nodes, home, "a") == ["Linux", "Linux"]
    nodes.change_host_key("a")
    assert ask(nodes, home, "a") == ["BadHostKeyException", "HostKeyNotVerifiable"]
    assert ask(nodes, home, "b") == ["Linux", "Linux"]
