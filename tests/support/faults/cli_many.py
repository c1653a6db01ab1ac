"""Many nodes at once, and a node with another clock."""

import socket
import time
from pathlib import Path

from tests.support.faults.case import Case
from tests.support.faults.report import absent

from tipcflow.domain.numbers.units import rough

NODES = 16
# sshd with MaxStartups 1 drops new connections while another one has not logged in yet.
HOGS_S = 4.0
REFUSED = "MaxStartups throttling"
AHEAD_S = 600
FAKETIME = "faketime/libfaketime.so.1"
LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/local/lib")


def refused_logins(case: Case) -> None:
    nodes = case.nodes_of_its_own(names=tuple(f"n{number}" for number in range(NODES)), slots=1)
    for node in nodes.cluster.nodes:
        config = Path(nodes.folder, node.name, "sshd_config")
        config.write_text(config.read_text().replace("MaxStartups 100", "MaxStartups 1"))
        nodes.kill_sshd(node.name)
        nodes.start_sshd(node.name)
    addresses = ",".join(f"192.168.0.{number}" for number in range(1, NODES + 1))
    case.site.edit_params("192.168.0.1,192.168.0.2;0,1", f"{addresses};0")
    hogs = [socket.create_connection((node.address, 22)) for node in nodes.cluster.nodes]
    case.now()
    running = case.start_changed()
    logs = [Path(nodes.folder, node.name, "sshd.log") for node in nodes.cluster.nodes]

    def refused() -> bool:
        return running.over or all(REFUSED in log.read_text(errors="replace") for log in logs)

    case.wait_for(refused, "a refused login on each node", 120)
    time.sleep(HOGS_S)  # how long logins are refused is the fault
    for hog in hogs:
        hog.close()
    case.end(running)


def clock_ahead(case: Case) -> None:
    """All that runs on node b from its runner on, seen through libfaketime.

    Both of its clocks are ahead: with FAKETIME_DONT_FAKE_MONOTONIC every `time.sleep` of Python fails (EINVAL).
    """
    library = next((path for path in (Path(one, FAKETIME) for one in LIBRARIES) if path.exists()), None)
    if library is None:
        absent("libfaketime is not installed (Debian: apt-get install faketime)")
    ahead = f"LD_PRELOAD={library} FAKETIME=+{AHEAD_S}"
    # What it shares with its children must outlive the process that made it, as a runner's `start` does not.
    keeper = case.nodes.exec("b", ["sh", "-c", f"{ahead} sleep 300 >/dev/null 2>&1 & echo $!"]).stdout.strip()
    node = case.nodes.cluster.node("b")
    python = case.folder / "python"
    shared = f"FAKETIME_SHARED='/faketime_sem_{keeper} /faketime_shm_{keeper}'"
    python.write_text(f'#!/bin/sh\n{ahead} {shared} exec {node.python} "$@"\n')
    python.chmod(0o755)
    case.site.configure_node("b", python=str(python))
    try:
        case.now()
        running = case.start()
        case.end(running)
    finally:
        case.nodes.exec("b", ["kill", "-9", keeper])
    printed = case.printed(running)
    assert f"the clock of node b is {rough(AHEAD_S)} ahead" in printed, printed
