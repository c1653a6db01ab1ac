"""Faults of the controller, and actions of users and operators. For runs of the CLI unless noted otherwise."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import threading
import time

from tests.faults.fault import BUDGET, CANCELLED, CLI, GONE, INFRA, INTERRUPTED, NONE, Fault
from tests.faults.world import LOOP, World
from tests.support.certify import TIPCFLOW

ASCII = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}


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


def _reap_here(world: World) -> None:
    command = [str(TIPCFLOW), "nodes", "--cluster", world.site.cluster_file.stem, "reap"]
    subprocess.run(command, env=world.site.env, capture_output=True, timeout=120, check=False)


def _close_output(world: World) -> None:
    """The read end is replaced: what is being read now is the last that is read."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, world.controller.stdout.fileno())
    os.close(null)


def _ascii(world: World) -> None:
    before = {name: os.environ.get(name) for name in ASCII}

    def undo() -> None:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ.update({name: value} if value is not None else {})

    os.environ.update(ASCII)
    world.undo.append(undo)


def _second_controller(world: World) -> None:
    """Its database knows nothing of the first run: the node decides."""
    _second_run(world, TIPCFLOW_HOME=str(world.folder / "other-home"), TIPCFLOW_DATABASE_URL="")


def _second_run(world: World, **env: str) -> None:
    """Another run of the same chain requests the same slots."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [*world.site.command(), "--wait-minutes", "2"]
    other = subprocess.Popen(command, env={**world.site.env, **env}, **quiet)
    world.others.append(other)

    def end() -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            other.wait(120)
        other.kill()

    world.undo.append(end)


def _budget(world: World) -> None:
    world.site.configure_suite(budget_minutes=0.1)
    world.undo.append(world.site.configure_suite)
    # Every iteration from the chosen one on takes 3 s: the ranks make progress until the budget ends.
    number = "(epoch - 1) * 5 + iteration"
    world.in_train(LOOP, f"{LOOP}        time.sleep(3.0 if {number} >= {min(world.iteration, 5)} else 0)\n")


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
        classes=NONE,
        codes=frozenset({3, -signal.SIGINT}),
    ),
    Fault(
        "Ctrl-C three times",
        "the user presses Ctrl-C three times",
        STOPPED,
        strike=_to_controller(signal.SIGINT, 3),
        doors=CLI,
        names_node=False,
        in_training=False,
        classes=NONE,
        codes=frozenset({3, -signal.SIGINT}),
    ),
    Fault(
        "TERM controller",
        "`tipcflow run` gets SIGTERM",
        STOPPED,
        strike=_to_controller(signal.SIGTERM),
        doors=CLI,
        names_node=False,
        in_training=False,
        classes=NONE,
        codes=frozenset({3, -signal.SIGTERM}),
    ),
    Fault(
        "HUP controller",
        "the user's terminal closes",
        STOPPED,
        strike=_to_controller(signal.SIGHUP),
        doors=CLI,
        names_node=False,
        in_training=False,
        classes=NONE,
        codes=frozenset({3, -signal.SIGHUP}),
    ),
    Fault(
        "KILL controller",
        "`tipcflow run` gets SIGKILL",
        INFRA | {"none", "not started"},
        strike=_to_controller(signal.SIGKILL),
        doors=CLI,
        healed=True,  # a verdict that was stored before stays
        names_node=False,
        in_training=False,
        alone=True,
        classes=GONE,
        codes=frozenset({-signal.SIGKILL}),
        status_by="reap",
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
        classes=NONE,
    ),
    Fault(
        "reaped",
        "an operator reaps the run from another machine",
        INFRA,
        strike=_reap,
        healed=True,
        classes=INTERRUPTED,
    ),
    Fault(
        "second run",
        "a second run asks for the same slots",
        frozenset(),
        strike=_second_run,
        doors=CLI,
        healed=True,
        names_node=False,
        alone=True,
        classes=NONE,
    ),
    Fault(
        "budget",
        "the run's budget ends inside the training",
        INFRA,
        prepare=_budget,
        names_node=False,
        alone=True,
        doors=CLI,
        paddle=False,
        classes=BUDGET,
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
        classes=NONE,
        codes=frozenset({5}),
        unfetched=True,
    ),
    Fault(
        "second controller",
        "a run of another controller, with a database of its own, asks for the same slots",
        frozenset(),
        strike=_second_controller,
        doors=CLI,
        healed=True,
        names_node=False,
        alone=True,
        classes=NONE,
    ),
    Fault(
        "reaped here",
        "an operator reaps with the run's own database: a run that is leased is left alone",
        frozenset(),
        strike=_reap_here,
        doors=CLI,
        healed=True,
        names_node=False,
        classes=NONE,
    ),
    Fault(
        "closed output",
        "the reader of `tipcflow run` closes its end, as `head` does",
        frozenset(),
        strike=_close_output,
        doors=CLI,
        healed=True,
        names_node=False,
        classes=NONE,
    ),
    Fault(
        "ASCII terminal",
        "the user's terminal knows only ASCII",
        frozenset(),
        prepare=_ascii,
        doors=CLI,
        healed=True,
        names_node=False,
        classes=NONE,
    ),
)
