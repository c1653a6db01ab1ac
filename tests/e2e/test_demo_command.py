"""`tipcflow demo` as a user runs it: interrupted at several moments it leaves nothing; without root it works."""

import ctypes
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from devcluster.local_nodes import processes

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [str(Path(sys.executable).with_name("tipcflow")), "demo", "--cli"]
DEADLINE_S = 240.0
USER = 61234


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that shares the nodes' environment with this clone, so that nothing is installed."""
    made = ROOT / ".tipcflow" / "envs"
    assert (made / "node-cpu" / ".tipcflow-complete").exists(), "make test makes the nodes' environment"
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "envs").symlink_to(made)
    return tmp_path / "home"


def running(home: Path) -> list[int]:
    """Processes whose command line or working directory is below the home."""
    found = []
    for member in processes.everything():
        folder = Path(f"/proc/{member.pid}")
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace")
            at = str((folder / "cwd").readlink())
        except OSError:
            continue
        if not member.ended and (str(home) in words or at.startswith(str(home))):
            found.append(member.pid)
    return found


def leases(home: Path) -> int:
    database = home / "tipcflow.db"
    if not database.exists():
        return 0
    with sqlite3.connect(database) as connection:
        count: int = connection.execute("select count(*) from leases").fetchone()[0]
    return count


# The last line on the screen when the signal is sent.
MOMENTS = [
    "connecting to",
    "train started",
    *(
        pytest.param(moment, marks=pytest.mark.full)
        for moment in ("2 nodes, a and b", "prepare started", "eval started")
    ),
]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(
    "number",
    [pytest.param(signal.SIGINT, id="SIGINT"), pytest.param(signal.SIGTERM, id="SIGTERM", marks=pytest.mark.full)],
)
def test_interrupted_demo_leaves_nothing(home: Path, moment: str, number: signal.Signals) -> None:
    environment = os.environ | {"TIPCFLOW_HOME": str(home)}
    process = subprocess.Popen(
        COMMAND, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if moment in line:
            break
    process.send_signal(number)
    output = process.communicate(timeout=DEADLINE_S)[0]
    assert process.returncode == 3, output
    assert output.strip().splitlines()[-1] == "cancelled"
    assert list((home / "nodes").iterdir()) == []
    assert running(home) == []
    assert leases(home) == 0


def test_a_wrong_mode_is_one_clear_message(home: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--mode", "no_such_mode", "--home", str(home)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 2
    assert "no_such_mode" in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    assert list((home / "nodes").iterdir()) == []


@pytest.mark.root
def test_without_root_nodes_are_loopback_addresses() -> None:
    """A child that has become an ordinary user makes nodes, and logs in to one."""
    home = Path(f"/var/tmp/tipcflow-test-{os.getpid()}")
    home.mkdir(mode=0o700)
    os.chown(home, USER, USER)
    try:
        child = os.fork()
        if child == 0:
            os._exit(_as_ordinary_user(home))
        deadline = time.monotonic() + 60
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert (home / "said").read_text().split() == ["loopback", "tipcflow"]
        assert ended == (child, 0)
        assert not list((home / "nodes").iterdir())
    finally:
        shutil.rmtree(home)


def _as_ordinary_user(home: Path) -> int:
    import encodings.idna  # noqa: F401 (the standard library may be closed to ordinary users later on)

    from devcluster.local_nodes import init
    from devcluster.local_nodes.nodes import local_nodes

    try:
        _give_user_an_account(home)
        # Neither this clone nor its interpreter need be readable for an ordinary user.
        init.__file__ = shutil.copy(init.__file__, home / "init.py")
        sys.executable = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
        os.setgroups([])
        os.setgid(USER)
        os.setuid(USER)
        os.environ["HOME"] = str(home)
        with local_nodes(home) as nodes:
            target = nodes.cluster.node("b").ssh
            argv = ["ssh", "-F", "none", "-i", target.identity_file, "-p", str(target.port), "-o", "BatchMode=yes"]
            argv += ["-o", f"UserKnownHostsFile={target.known_hosts}", f"{target.user}@{target.host}", "id -un"]
            done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
            (home / "said").write_text(f"{nodes.kind} {done.stdout or done.stderr}")
        return 0
    except BaseException as error:
        (home / "said").write_text(repr(error))
        return 2


def _give_user_an_account(home: Path) -> None:
    """In a mount namespace of this process alone there is an ordinary user more."""
    if ctypes.CDLL(None, use_errno=True).unshare(0x00020000):
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    passwd = home / "passwd"
    passwd.write_text(Path("/etc/passwd").read_text() + f"tipcflow:x:{USER}:{USER}::{home}:/bin/sh\n")
    passwd.chmod(0o644)
    subprocess.run(["mount", "--bind", passwd, "/etc/passwd"], check=True)
