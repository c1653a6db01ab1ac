"""Node facts: hardware, software, and reachable peers."""

from __future__ import annotations

import errno
import os
import platform
import re
import shutil
import socket
import subprocess
import threading
import time
from typing import Any, Callable

from .files import Json
from .framework import libraries, software

LIMIT_S = 5.0  # time limit for all facts together
PEER_S = 2.0
SSH_PORT = 22
GPU_FIELDS = ("name", "uuid", "memory.total", "driver_version", "compute_cap")


def read_text(path: str, limit: int = 1 << 20) -> str:
    """Return a small file's text, '' if it cannot be read."""
    try:
        with open(path, "rb") as handle:
            return handle.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""


def output(*command: str) -> str:
    """Return a command's stdout, '' if it is missing or fails.

    Raises:
        subprocess.TimeoutExpired: the command exceeds its time limit, so its result is unknown.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=LIMIT_S - 1,
            check=False,
        )
    except OSError:
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def machine(workspace: str) -> Json:
    """Return names, kernel, CPU, memory, disk, container."""
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', read_text("/etc/os-release"), re.M))
    cpu = read_text("/proc/cpuinfo")
    model = re.search(r"^(?:model name|Model|cpu model)\s*: (.*)$", cpu, re.M)
    flags = re.search(r"^(?:flags|Features)\s*: (.*)$", cpu, re.M)
    memory = {
        name: int(size) * 1024
        for name, size in re.findall(r"^(\w+):\s+(\d+) kB$", read_text("/proc/meminfo"), re.M)
    }
    place = workspace
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    disk = os.statvfs(place)
    return {
        "hostname": socket.gethostname(),
        "os": release.get("PRETTY_NAME", platform.system()),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu_model": model.group(1).strip() if model else platform.machine(),
        "cpu_count": os.cpu_count() or 0,  # of the machine: a login may be bound to some of them
        "cpu_flags": sorted(flags.group(1).split()) if flags else [],
        "memory_bytes": memory.get("MemTotal", 0),
        "memory_available_bytes": memory.get("MemAvailable", 0),
        "swap_bytes": memory.get("SwapTotal", 0),
        "disk_free_bytes": disk.f_bavail * disk.f_frsize,
        "container": container(),
    }


def container() -> str:
    """Return the kind of container that this is, '' outside a container."""
    if os.path.exists("/.dockerenv"):
        return "docker"
    if os.path.exists("/run/.containerenv"):
        return "podman"
    found = re.search(r"(docker|containerd|kubepods|lxc|libpod)", read_text("/proc/1/cgroup"))
    return found.group(1) if found else ""


def addresses() -> Json:
    """Return the node's IPv4 and IPv6 addresses except loopback and link-local ones."""
    found = re.findall(r"^\d+: \S+\s+inet6? ([0-9a-f.:]+)/", output("ip", "-o", "addr", "show"), re.M)
    if not found:  # an image without iproute2
        found = re.findall(r"\|-- ([\d.]+)\n +/32 host LOCAL", read_text("/proc/net/fib_trie"))
    if not found:
        try:
            found = [str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None)]
        except OSError:
            found = []
    outer = [ip for ip in found if not ip.startswith(("127.", "fe80:")) and ip != "::1"]
    return {"ips": list(dict.fromkeys(outer or found))}


def gpus() -> Json:
    """Return GPUs, driver and the newest CUDA that it supports, as reported by nvidia-smi; memory in bytes."""
    rows = output("nvidia-smi", "--query-gpu=" + ",".join(GPU_FIELDS), "--format=csv,noheader,nounits")
    found = []
    for row in rows.splitlines():
        cells = [cell.strip() for cell in row.split(",")]
        if len(cells) == len(GPU_FIELDS):
            size = int(cells[2]) * 1024 * 1024 if cells[2].isdigit() else 0
            found.append(
                {"name": cells[0], "uuid": cells[1], "memory_bytes": size, "compute_capability": cells[4]}
            )
    driver = rows.splitlines()[0].split(",")[3].strip() if found else ""
    report = {"gpus": found, "driver": driver}
    newest = re.search(r"CUDA Version: *([\d.]+)", output("nvidia-smi")) if found else None
    return dict(report, cuda_of_driver=newest.group(1)) if newest else report


def engines() -> Json:
    """Return the versions of docker and of NVIDIA's container toolkit, as far as they are installed."""
    found = {}
    for name, command in (("docker", "docker"), ("nvidia_docker", "nvidia-container-cli")):
        version = re.search(r"\d+(?:\.\d+)+", output(command, "--version"))
        if version:
            found[name] = version.group()
    return found


def unreachable(name: str, address: str, port: int) -> str:
    """Return why a peer is unreachable, '' if it is reachable: by ping, if installed, and by TCP to its ssh
    port. Port 0: the peer has no sshd; that it refuses the connection shows that it is reachable."""
    host, colon, own = address.rpartition(":")
    if colon and own.isdigit() and host.count(":") != 1:
        address, port = host.strip("[]"), int(own)
    try:
        socket.create_connection((address, port or SSH_PORT), timeout=PEER_S).close()
    except OSError as error:
        if not port and error.errno == errno.ECONNREFUSED:
            return ""
        reason = error.strerror or str(error)
    else:
        return ""
    tool = shutil.which("ping")
    if tool:
        try:
            pinged = output(tool, "-c1", f"-W{int(PEER_S)}", address)
        except subprocess.TimeoutExpired:
            pinged = ""
        reason += " (the host responds to ping)" if pinged else " (the host does not respond to ping)"
    return f"{address} port {port}: {reason}"


def facts(workspace: str, python: str, peers: str, port: int) -> Json:
    """Return the fields of tipcflow.domain.NodeFacts except `node`; `clock` is this node's time, in seconds
    since the epoch.

    Facts unknown at the time limit are reported: a peer counts as unreachable until it is reached, and a
    part of the facts is listed in `unfinished` until it is complete.

    Args:
        python: interpreter of the node's environment; frameworks are located in it and never imported.
        peers: `name=address,…`; an address may include its own port.
        port: default ssh port of the peers.
    """
    requested = [tuple(peer.split("=", 1)) for peer in peers.split(",") if peer]
    lost: dict[str, str] = {name: f"{address}: no response within {LIMIT_S:g} s" for name, address in requested}
    parts: dict[str, Json] = {}

    def reach(name: str, address: str) -> None:
        reason = unreachable(name, address, port)
        if reason:
            lost[name] = reason
        else:
            del lost[name]

    def part(name: str, function: Callable[..., Json], *args: Any) -> None:
        try:
            parts[name] = function(*args)
        except subprocess.TimeoutExpired:
            return

    # The framework's own CUDA comes after the system's.
    probes: list[tuple[Any, ...]] = [("libraries", libraries), ("machine", machine, workspace)]
    probes += [("addresses", addresses), ("gpus", gpus), ("software", software, python), ("engines", engines)]
    jobs: list[tuple[Any, ...]] = [(part, *probe) for probe in probes] + [(reach, *peer) for peer in requested]
    threads = [threading.Thread(target=job[0], args=job[1:], daemon=True) for job in jobs]
    until = time.monotonic() + LIMIT_S
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    there = dict(parts)  # a snapshot: a late thread may still add to it
    report: Json = {"packages": {}, "unfinished": [probe[0] for probe in probes if probe[0] not in there]}
    for probe in probes:
        report.update(there.get(probe[0], {}))
    return dict(report, unreachable=dict(lost), clock=time.time())
