"""Faults of the controller's side, and what users and operators do. Only for runs of the CLI unless said."""

import contextlib
import signal
import sqlite3
import subprocess
import threading
import time

from tests.faults.fault import CANCELLED, CLI, INFRA, Fault
from tests.faults.world import World
from tests.support.certify import TIPCFLOW


def _to_controller(number: signal.Signals, times: int = 1) -> object:
    def strike(world: World) -> None:
        for _ in range(times):
            with contextlib.suppress(ProcessLookupError):
                world.controller.send_signal(number)
            time.sleep(0.3 * (times > 1))  # as a user presses Ctrl-C again

    return strike


def _lock_database(world: World) -> None:
    def hold() -> None:
        path = world.site.home / "tipcflow.db"
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("PRAGMA busy_timeout=60000")
            other.execute("BEGIN EXCLUSIVE")
            time.sleep(8.0)  # how long it is locked is the fault
            other.execute("ROLLBACK")

    thread = threading.Thread(target=hold)
    thread.start()
    world.undo.append(thread.join)


def _reap(world: World) -> None:
    """An operator reaps the run from another machine, with another database."""
    runs = [path.name for path in world.run_folders()]
    if not runs:
        world.notes.append("no run on the node")
        return
    env = {**world.site.env, "TIPCFLOW_HOME": str(world.folder / "other-home"), "TIPCFLOW_DATABASE_URL": ""}
    command = [str(TIPCFLOW), "nodes", "--cluster", world.site.cluster_file.stem, "reap", "--run", runs[-1]]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        world.notes.append(f"reap: {done.stderr.strip()[-200:]}")


def _second_run(world: World) -> None:
    """Another run of the same chain asks for the same slots."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    other = subprocess.Popen([*world.site.command(), "--wait-minutes", "2"], env=world.site.env, **quiet)
    world.others.append(other)

    def end() -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            other.wait(120)
        other.kill()

    world.undo.append(end)


def _budget(world: World) -> None:
    world.site.configure_suite(budget_minutes=0.1)
    world.undo.append(world.site.configure_suite)
    world.at_iteration("time.sleep(5.5)", ranks=range(4))


def _full_home(world: World) -> None:
    """The controller's own disk is full."""
    subprocess.run(
        ["dd", "if=/dev/zero", f"of={world.site.home}/filler", "bs=1M"], capture_output=True, check=False
    )
    world.undo.append(lambda: (world.site.home / "filler").unlink(missing_ok=True))


def _small_home(world: World) -> None:
    world.site.home.mkdir(parents=True, exist_ok=True)
    home = str(world.site.home)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", home], check=True)
    world.undo.append(lambda: None)


# A signal may come before the process has made a run.
STOPPED = CANCELLED | {"not started"}
FAULTS = (
    Fault(
        "Ctrl-C",
        "the user presses Ctrl-C",
        STOPPED,
        strike=_to_controller(signal.SIGINT),
        doors=CLI,
        names_node=False,
        in_training=False,
    ),
    Fault(
        "Ctrl-C three times",
        "the user presses Ctrl-C three times",
        STOPPED,
        strike=_to_controller(signal.SIGINT, 3),
        doors=CLI,
        names_node=False,
        in_training=False,
    ),
    Fault(
        "TERM controller",
        "`tipcflow run` gets SIGTERM",
        STOPPED,
        strike=_to_controller(signal.SIGTERM),
        doors=CLI,
        names_node=False,
        in_training=False,
    ),
    Fault(
        "HUP controller",
        "the user's terminal closes",
        STOPPED,
        strike=_to_controller(signal.SIGHUP),
        doors=CLI,
        names_node=False,
        in_training=False,
    ),
    Fault(
        "KILL controller",
        "`tipcflow run` gets SIGKILL",
        INFRA | {"none", "not started"},
        strike=_to_controller(signal.SIGKILL),
        doors=CLI,
        names_node=False,
        in_training=False,
        alone=True,
    ),
    Fault(
        "database locked",
        "another writer holds the SQLite file for 8 s",
        frozenset(),
        strike=_lock_database,
        doors=CLI,
        healed=True,
        names_node=False,
        in_training=False,
    ),
    Fault("reaped", "an operator reaps the run from another machine", INFRA, strike=_reap, healed=True),
    Fault(
        "second run",
        "a second run asks for the same slots",
        frozenset(),
        strike=_second_run,
        doors=CLI,
        healed=True,
        names_node=False,
        alone=True,
    ),
    Fault(
        "budget",
        "the run's budget ends inside the training",
        INFRA | {"failed"},
        prepare=_budget,
        names_node=False,
        alone=True,
        doors=CLI,
        paddle=False,
    ),
    Fault(
        "disk full here",
        "the controller's disk is full",
        INFRA | {"none"},
        prepare=_small_home,
        strike=_full_home,
        healed=True,
        doors=CLI,
        names_node=False,
        alone=True,
    ),
)
