"""Faults of nodes: power, links, ssh servers, disks and files."""

import os
import time
from pathlib import Path

from tests.faults.fault import DISK, GONE, INFRA, NODE_LOST, NONE, UNREADY, Fault
from tests.faults.world import LOOP, WAITS, World


def _cut(world: World) -> None:
    world.nodes.cut(world.target)


def _cut_for_good(world: World) -> None:
    world.nodes.cut(world.target)
    world.away.add(world.target)
    world.undo.append(lambda: world.nodes.restore(world.target))


def _restore(world: World) -> None:
    world.nodes.restore(world.target)


def _kill_sshd(world: World) -> None:
    world.nodes.kill_sshd(world.target)


def _start_sshd(world: World) -> None:
    world.nodes.start_sshd(world.target)


def _kill_sshd_for_good(world: World) -> None:
    world.nodes.kill_sshd(world.target)
    world.away.add(world.target)
    world.undo.append(lambda: world.nodes.start_sshd(world.target))


def _reboot(world: World) -> None:
    world.nodes.reboot(world.target)


def _shut_down(world: World) -> None:
    """TERM to all, then the power: what `systemctl reboot` does."""
    pids = [str(one.pid) for one in world.nodes.processes(world.target)]
    if pids:
        world.nodes.exec(world.target, ["kill", "-15", *pids])
    time.sleep(2.0)  # as long as a shutdown gives its services
    world.nodes.reboot(world.target)


def _host_key(world: World) -> None:
    folder = world.nodes.folder / world.target
    kept = {path: path.read_bytes() for path in (folder / "host_key", folder / "host_key.pub")}

    def undo() -> None:
        for path, data in kept.items():
            path.write_bytes(data)
        world.nodes.kill_sshd(world.target)
        world.nodes.start_sshd(world.target)

    world.undo.append(undo)
    world.refused.add(world.target)
    world.nodes.change_host_key(world.target)


def _login(world: World) -> None:
    """The login is refused from now on, and open connections are closed."""
    keys = world.nodes.folder / world.target / "authorized_keys"
    text = keys.read_text()
    keys.write_text("")
    world.undo.append(lambda: keys.write_text(text) and None)
    world.nodes.kill_sshd(world.target)
    world.nodes.start_sshd(world.target)


def undo(world: World) -> None:
    """End the faults of the case that last."""
    for undo in world.undo:
        undo()
    world.undo.clear()


def _small_disk(world: World) -> None:
    workspace = str(world.workspace)
    world.execute("mkdir", "-p", workspace)
    world.execute("mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", workspace)
    world.undo.append(lambda: world.nodes.exec(world.target, ["umount", "-l", workspace]) and None)
    # After the moment: every further iteration of the node's ranks prints 4 MB.
    world.iteration = min(world.iteration, 5)
    later, ranks = f"(epoch - 1) * 5 + iteration > {world.iteration}", (0, 1) if world.target == "a" else (2, 3)
    code = "time.sleep(0.5), print('x' * (4 << 20), flush=True)"
    world.in_train(LOOP, f"{LOOP}        if {later} and rank in {ranks}:\n            {code}\n")


def _fill(world: World) -> None:
    # dd ends with an error when the disk is full: that is the point.
    world.nodes.exec(world.target, ["dd", "if=/dev/zero", f"of={world.workspace}/filler", "bs=1M"])
    if world.complete():
        world.notes.append("the training had ended before the disk was full")


def _remove_workspace(world: World) -> None:
    world.execute("rm", "-rf", str(world.workspace))


def _remove_jobs(world: World) -> None:
    world.execute("rm", "-rf", str(world.workspace / "jobs"))


def _break_runner_file(world: World) -> None:
    """The runner's file is there with its right name and without content."""
    folder = world.workspace / "bin"
    found = list(folder.glob("runner-*.py"))
    if not found:
        world.notes.append("no runner file")
    for path in found:
        os.truncate(path, world.rng.choice((0, 100)))


def _prepared_runner_file(world: World) -> None:
    """A run before left the file; it was cut since."""
    before = world.site.run()
    if before.code != 0:
        world.notes.append(f"the run before did not pass: {before.output[-200:]}")
    _break_runner_file(world)
    for path in world.ledger_folder.glob("*"):
        path.unlink()


def _slot_locks(world: World) -> None:
    for path in world.workspace.glob("slots/*.lock"):
        path.write_text("rubbish\n")


def _claims(world: World) -> None:
    world.execute("rm", "-rf", str(world.workspace / "claims"))


def _freeze(world: World) -> None:
    world.execute("sh", "-c", "kill -STOP -1")


def _thaw(world: World) -> None:
    world.execute("sh", "-c", "kill -CONT -1")


def _banner(world: World) -> None:
    folder = world.nodes.folder / world.target
    (folder / "banner").write_text("Authorised users only.\n" * 40)
    with (folder / "sshd_config").open("a") as config:
        config.write(f"Banner {folder / 'banner'}\n")
    world.nodes.kill_sshd(world.target)
    world.nodes.start_sshd(world.target)


def _login_script(world: World) -> None:
    """A .bashrc that prints: the node sees another file than this machine."""
    script = Path.home() / ".bashrc"
    if not script.exists():
        script.touch()
    printing = world.nodes.folder / world.target / "bashrc"
    printing.write_text("echo Welcome\n")
    world.execute("mount", "--bind", str(printing), str(script))
    world.undo.append(lambda: world.nodes.exec(world.target, ["umount", str(script)]) and None)


SHORT = (1.0, 4.0)
LONG = (WAITS["reconnect_s"] + 10.0, WAITS["reconnect_s"] + 20.0)
FAULTS = (
    Fault(
        "link short",
        "the node's link is down for 1 to 4 s",
        INFRA,
        strike=_cut,
        heal=_restore,
        away_s=SHORT,
        healed=True,
        in_training=False,
        classes=GONE,
    ),
    Fault(
        "link long",
        "the node's link is down for longer than the controller waits",
        INFRA,
        strike=_cut,
        heal=_restore,
        away_s=LONG,
        healed=True,
        in_training=False,
        classes=GONE,
    ),
    Fault(
        "link for good",
        "the node's link goes down and stays down",
        INFRA,
        strike=_cut_for_good,
        alone=True,
        in_training=False,
        classes=GONE,
    ),
    Fault(
        "sshd restarts",
        "sshd and its connections die; sshd is back after 1 to 4 s",
        INFRA,
        strike=_kill_sshd,
        heal=_start_sshd,
        away_s=SHORT,
        healed=True,
        in_training=False,
        classes=GONE,
    ),
    Fault(
        "sshd for good",
        "sshd dies and stays dead",
        INFRA,
        strike=_kill_sshd_for_good,
        alone=True,
        in_training=False,
        classes=GONE,
    ),
    Fault(
        "reboot",
        "the node loses its power and comes back",
        INFRA,
        strike=_reboot,
        healed=True,
        in_training=False,
        classes=GONE,
    ),
    Fault(
        "shutdown",
        "TERM to all processes, 2 s later the node reboots",
        INFRA,
        strike=_shut_down,
        healed=True,
        in_training=False,
        classes=GONE,
    ),
    Fault(
        "host key",
        "the node has another host key from now on",
        INFRA,
        strike=_host_key,
        healed=True,
        in_training=False,
        alone=True,
        classes=GONE,
    ),
    Fault(
        "login refused",
        "the login is refused for longer than the controller waits",
        INFRA,
        strike=_login,
        heal=undo,
        away_s=LONG,
        healed=True,
        in_training=False,
        classes=GONE,
    ),
    Fault(
        "disk full",
        "a workspace of 300 MB is filled, the training prints 4 MB per iteration",
        INFRA,
        prepare=_small_disk,
        strike=_fill,
        alone=True,
        classes=DISK,
    ),
    Fault(
        "workspace removed",
        "the whole workspace is removed",
        INFRA,
        strike=_remove_workspace,
        healed=True,
        in_training=False,
        alone=True,
        classes=GONE,
        loses_logs=True,
    ),
    Fault(
        "jobs removed",
        "all job folders are removed",
        INFRA,
        strike=_remove_jobs,
        healed=True,
        alone=True,
        classes=NODE_LOST,
    ),
    Fault(
        "runner file cut",
        "the runner's file is truncated in the middle of a run",
        INFRA,
        strike=_break_runner_file,
        healed=True,
        classes=GONE,
    ),
    Fault(
        "runner file cut before",
        "the runner's file of an earlier run was truncated",
        frozenset(),
        prepare=_prepared_runner_file,
        healed=True,
        names_node=False,
        classes=NONE,
    ),
    Fault("slot locks", "slot locks hold rubbish", INFRA, strike=_slot_locks, healed=True, classes=NONE),
    Fault("claims removed", "the claims folder is removed", INFRA, strike=_claims, healed=True, classes=NONE),
    Fault(
        "frozen node",
        "every process of the node, sshd too, is stopped for 1 to 30 s",
        INFRA,
        strike=_freeze,
        heal=_thaw,
        away_s=(1.0, LONG[1]),
        healed=True,
        in_training=False,
        classes=GONE,
    ),
    Fault(
        "login banner",
        "sshd sends a banner of 40 lines; the run passes",
        frozenset(),
        prepare=_banner,
        healed=True,
        names_node=False,
        classes=NONE,
    ),
    Fault("login script", "a .bashrc prints to stdout", INFRA, prepare=_login_script, alone=True, classes=UNREADY),
)
