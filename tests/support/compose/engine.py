"""A container engine for docker-compose, with networks; images are kept between runs, in .tipcflow/compose."""

import ipaddress
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.certify import ROOT
from tests.support.compose import rootfs, versions

KEPT = ROOT / ".tipcflow" / "compose"
PROGRAMS = ("dockerd", "docker", "iptables")
WAIT_S = 120.0
# All containers together are one control group, to which the kernel would give the share of one process.
_GROUP, _SHARES = "tipcflow-compose", "8192"
_CPU = Path("/sys/fs/cgroup/cpu")
_PREFIX = "tipc-compose-"
_FILES, _BASE, _SERVICES = "tipcflow-test-files:1", "tipcflow-test-base:2", "tipcflow-test-services:3"
_COMPILE = "python -m compileall -q -j 0 /usr/local/lib >/dev/null"


def missing() -> str:
    """Why there can be no engine here; '' if there can."""
    if os.geteuid() != 0:
        return "only root can start a container engine"
    absent = [name for name in PROGRAMS if not shutil.which(name)]
    absent += [] if versions.command() else ["docker-compose"]
    return f"not installed: {', '.join(absent)}" if absent else rootfs.missing()


class Engine:
    """A running engine.

    Attributes:
        env: environment of commands that use it.
    """

    def __init__(self, socket: str) -> None:
        self.env: Mapping[str, str] = {**os.environ, "DOCKER_HOST": socket, "DOCKER_BUILDKIT": "0"}

    def run(self, *words: str | Path, timeout: float = 120, check: bool = True) -> str:
        """Run `docker`; returns its output, without error messages."""
        done = subprocess.run(
            ["docker", *words], env=self.env, capture_output=True, text=True, timeout=timeout, check=False
        )
        assert not check or done.returncode == 0, f"docker {' '.join(map(str, words))}\n{done.stdout}{done.stderr}"
        return done.stdout.strip()

    def images(self) -> dict[str, str]:
        """Make the base images; returns the variables of docker-compose.yaml that name them."""
        if not self._has(_BASE):
            self._make_base()
        if not self._has(_SERVICES):
            folder = Path(__file__).parent
            self.run("build", "--build-arg", f"BASE={_BASE}", "--tag", _SERVICES, folder, timeout=900)
        names = dict.fromkeys(("POSTGRES_IMAGE", "REDIS_IMAGE", "NGINX_IMAGE"), _SERVICES)
        return {**names, "PYTHON_IMAGE": _BASE}

    @property
    def address(self) -> str:
        """Address of this machine in the networks of all containers: the bridge, which engines may not name."""
        form = "{{(index .IPAM.Config 0).Gateway}} {{(index .IPAM.Config 0).Subnet}}"
        *gateway, subnet = self.run("network", "inspect", "bridge", "--format", form).split()
        return gateway[0] if gateway else str(next(ipaddress.ip_network(subnet).hosts()))

    def found_in(self, image: str, words: Mapping[str, bytes]) -> set[str]:
        """The names of the words that a layer or the configuration of an image contains."""
        with subprocess.Popen(["docker", "save", image], env=self.env, stdout=subprocess.PIPE) as saved:
            assert saved.stdout is not None
            found, end = set(), b""
            while block := saved.stdout.read(1 << 22):
                text = end + block
                found |= {name for name, word in words.items() if word in text}
                end = block[-max(map(len, words.values())) :]
        assert saved.returncode == 0
        return found

    def _has(self, image: str) -> bool:
        return bool(self.run("images", "--quiet", image))

    def _make_base(self) -> None:
        rootfs.install_pip(KEPT / "pip", ROOT / "requirements/build.txt")
        importing = subprocess.Popen(["docker", "import", "-", _FILES], env=self.env, stdin=subprocess.PIPE)
        assert importing.stdin is not None
        rootfs.write_image(importing.stdin, KEPT / "pip")
        importing.stdin.close()
        assert importing.wait(1200) == 0
        # The interpreter's library is in a folder that the machine's own cache of libraries may lack. Bytecode is
        # part of Python's image and of what pip installs; some packages have files that do not compile.
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "Dockerfile").write_text(f"FROM {_FILES}\nRUN ldconfig && {{ {_COMPILE} || true; }}\n")
            self.run("build", "--tag", _BASE, folder, timeout=900)


@contextmanager
def compose_engine() -> Iterator[Engine]:
    """Start an engine, and stop it at the end; its images are kept."""
    KEPT.mkdir(parents=True, exist_ok=True)
    # Names of sockets are short.
    base = Path("/tmp")
    remove_leftovers(base)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
    socket = f"unix://{folder}/socket"
    words = [
        "dockerd",
        "--data-root",
        f"{KEPT}/data",
        "--exec-root",
        f"{folder}/exec",
        "--pidfile",
        f"{folder}/pid",
    ]
    words += ["-H", socket, "--shutdown-timeout=5", *_control_group()]
    with (KEPT / "dockerd.log").open("wb") as log:
        daemon = subprocess.Popen(words, stdout=log, stderr=log)
    engine = Engine(socket)
    try:
        end = time.monotonic() + WAIT_S
        while subprocess.run(["docker", "version"], env=engine.env, capture_output=True, check=False).returncode:
            if daemon.poll() is not None or time.monotonic() > end:
                raise AssertionError((KEPT / "dockerd.log").read_text()[-2000:])
            time.sleep(0.2)
        yield engine
    finally:
        daemon.terminate()
        daemon.wait(WAIT_S)
        _remove(folder)


def remove_leftovers(base: Path) -> None:
    """Remove what killed engines left: network namespaces have addresses that containers of the next one get, and
    this machine reaches the old ones."""
    for folder in base.glob(f"{_PREFIX}*"):
        try:
            command = Path("/proc", (folder / "pid").read_text().strip(), "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            command = b""
        is_starting = not (folder / "pid").exists() and time.time() - folder.stat().st_mtime < WAIT_S
        if b"dockerd" not in command and not is_starting:
            _remove(folder)


def _remove(folder: Path) -> None:
    for namespace in (folder / "exec" / "netns").glob("*"):
        subprocess.run(["umount", namespace], capture_output=True, check=False)
    shutil.rmtree(folder, ignore_errors=True)


def _control_group() -> list[str]:
    """Options that keep containers in the control group of the tests, which may have a low priority.

    Only where control groups have version 1: a group of version 2 with processes has no groups below it.
    """
    if not (_CPU / "cpu.shares").exists():
        return []
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    own = next(path for _, controllers, path in lines if "cpu" in controllers.split(","))
    group = f"{own.rstrip('/')}/{_GROUP}"
    folder = _CPU / group.lstrip("/")
    folder.mkdir(exist_ok=True)
    (folder / "cpu.shares").write_text(_SHARES)
    return [f"--cgroup-parent={group}"]
