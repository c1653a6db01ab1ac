"""A real container engine of a test's own, with an image that is made of this machine's files."""

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

IMAGE = "tipcflow-test:1"
MARKER = "inside the image"
PYTHON = os.path.realpath(sys.executable)
# The interpreter's folder is too large to be copied.
ARGS = ("-v", f"{sys.base_prefix}:{sys.base_prefix}:ro")
WAIT_S = 60.0
_TOOLS = ("bash", "sh", "sleep", "cat", "env", "mkdir", "touch", "uname")


def missing() -> str:
    """Why there can be no engine here, '' when there can."""
    if os.geteuid() != 0:
        return "only root can start a container engine"
    absent = [name for name in ("dockerd", "docker", "containerd", "runc") if not shutil.which(name)]
    return f"not installed: {', '.join(absent)}" if absent else ""


@contextmanager
def real_engine() -> Iterator[Path]:
    """A `docker` that talks to a daemon of its own; both are gone at the end, with all containers."""
    # Not pytest's folder: its name would be too long for a socket's.
    folder = Path(tempfile.mkdtemp(prefix="tipc-engine-", dir="/tmp"))
    socket = f"unix://{folder}/socket"
    words = [
        "dockerd",
        "--data-root",
        f"{folder}/data",
        "--exec-root",
        f"{folder}/exec",
        "--pidfile",
        f"{folder}/pid",
    ]
    words += ["-H", socket, "--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-masq=false"]
    words.append("--shutdown-timeout=5")
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
    docker = folder / "docker"
    docker.write_text(f'#!/bin/sh\nexec {shutil.which("docker")} -H {socket} "$@"\n')
    docker.chmod(0o755)
    try:
        end = time.monotonic() + WAIT_S
        while subprocess.run([docker, "version"], capture_output=True, check=False).returncode:
            if daemon.poll() is not None or time.monotonic() > end:
                raise AssertionError((folder / "log").read_text()[-2000:])
            time.sleep(0.1)
        subprocess.run([docker, "import", "-", IMAGE], input=_image(), stdout=subprocess.DEVNULL, check=True)
        yield docker
        left = subprocess.run([docker, "ps", "-aq"], capture_output=True, text=True, check=True).stdout.split()
        if left:
            subprocess.run([docker, "rm", "-f", *left], capture_output=True, check=False)
    finally:
        daemon.terminate()
        daemon.wait(WAIT_S)
        # The daemon leaves its handle on the host's network mounted, and a mount keeps its folder.
        subprocess.run(["umount", folder / "exec" / "netns" / "default"], capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _image() -> bytes:
    """bash, a few tools, and what they and Python need to start."""
    programs = [os.path.realpath(str(shutil.which(name))) for name in _TOOLS]
    modules = Path(sys.base_prefix, "lib").glob("python3.*/lib-dynload/*.so")
    done = subprocess.run(["ldd", PYTHON, *programs, *modules], capture_output=True, text=True, check=True)
    libraries = set(re.findall(r"(/\S+\.so\S*) \(0x", done.stdout))
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, program in zip(_TOOLS, programs, strict=True):
            tar.add(program, f"bin/{name}")
        for library in sorted(libraries):
            if not library.startswith(sys.base_prefix):
                tar.add(os.path.realpath(library), library.lstrip("/"))
        for folder in ("tmp", "etc", "proc", "sys", "dev", "usr/bin"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        marker = tarfile.TarInfo("etc/marker")
        marker.size = len(MARKER)
        tar.addfile(marker, io.BytesIO(MARKER.encode()))
    return made.getvalue()
