"""Faults of nodes: power, links, ssh servers, disks and files."""

import os
import time

from tests.faults.fault import INFRA, Fault
from tests.faults.world import WAITS, World


def _cut(world: World) -> None:
    world.nodes.cut(world.victim)


def _cut_for_good(world: World) -> None:
    world.nodes.cut(world.victim)
    world.away.add(world.victim)
    world.undo.append(lambda: world.nodes.restore(world.victim))


def _restore(world: World) -> None:
    world.nodes.restore(world.victim)


def _kill_sshd(world: World) -> None:
    world.nodes.kill_sshd(world.victim)


def _start_sshd(world: World) -> None:
    world.nodes.start_sshd(world.victim)


def _kill_sshd_for_good(world: World) -> None:
    world.nodes.kill_sshd(world.victim)
    world.away.add(world.victim)
    world.undo.append(lambda: world.nodes.start_sshd(world.victim))


def _reboot(world: World) -> None:
    world.nodes.reboot(world.victim)


def _shut_down(world: World) -> None:
    """TERM to all, then the power: what `systemctl reboot` does."""
    pids = [str(one.pid) for one in world.nodes.processes(world.victim)]
    if pids:
        world.nodes.exec(world.victim, ["kill", "-15", *pids])
    time.sleep(2.0)  # as long as a shutdown gives its services
    world.nodes.reboot(world.victim)


def _host_key(world: World) -> None:
    folder = world.nodes.folder / world.victim
    kept = {path: path.read_bytes() for path in (folder / "host_key", folder / "host_key.pub")}

    def undo() -> None:
        for path, data in kept.items():
            path.write_bytes(data)
        world.nodes.kill_sshd(world.victim)
        world.nodes.start_sshd(world.victim)

    world.undo.append(undo)
    world.refused.add(world.victim)
    world.nodes.change_host_key(world.victim)


def _login(world: World) -> None:
    """The login is refused from now on, and open connections are closed."""
    keys = world.nodes.folder / world.victim / "authorized_keys"
    text = keys.read_text()
    keys.write_text("")
    world.undo.append(lambda: keys.write_text(text) and None)
    world.nodes.kill_sshd(world.victim)
    world.nodes.start_sshd(world.victim)


def _login_back(world: World) -> None:
    for undo in world.undo:
        undo()
    world.undo.clear()


def _small_disk(world: World) -> None:
    workspace = str(world.workspace)
    world.execute("mkdir", "-p", workspace)
    world.execute("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", workspace)
    world.undo.append(lambda: world.nodes.exec(world.victim, ["umount", "-l", workspace]) and None)
    world.at_iteration("print('x' * (4 << 20), flush=True)")


def _fill(world: World) -> None:
    # dd ends with an error when the disk is full: that is the point.
    world.nodes.exec(world.victim, ["dd", "if=/dev/zero", f"of={world.workspace}/filler", "bs=1M"])


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


def _fifo(world: World) -> None:
    """A worker's log becomes a FIFO that nothing writes to."""
    logs = list(world.workspace.glob("runs/*/src/**/workerlog.*"))
    if not logs:
        world.notes.append("no worker log")
    for path in logs:
        path.unlink()
        os.mkfifo(path)


def _slot_locks(world: World) -> None:
    for path in world.workspace.glob("slots/*.lock"):
        path.write_text("rubbish\n")


def _claims(world: World) -> None:
    world.execute("rm", "-rf", str(world.workspace / "claims"))


def _loss_rule(percent: int) -> object:
    def strike(world: World) -> None:
        share = str(percent / 100)
        rule = ["INPUT", "-m", "statistic", "--mode", "random", "--probability", share, "-j", "DROP"]
        world.execute("iptables", "-A", *rule)
        world.undo.append(lambda: world.nodes.exec(world.victim, ["iptables", "-D", *rule]) and None)

    return strike


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
    ),
    Fault(
        "link for good",
        "the node's link goes down and stays down",
        INFRA,
        strike=_cut_for_good,
        alone=True,
        in_training=False,
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
    ),
    Fault(
        "sshd for good",
        "sshd dies and stays dead",
        INFRA,
        strike=_kill_sshd_for_good,
        alone=True,
        in_training=False,
    ),
    Fault(
        "reboot", "the node loses its power and comes back", INFRA, strike=_reboot, healed=True, in_training=False
    ),
    Fault(
        "shutdown",
        "TERM to all processes, 2 s later the node reboots",
        INFRA,
        strike=_shut_down,
        healed=True,
        in_training=False,
    ),
    Fault(
        "host key",
        "the node has another host key from now on",
        INFRA,
        strike=_host_key,
        healed=True,
        in_training=False,
        alone=True,
    ),
    Fault(
        "login refused",
        "the login is refused for longer than the controller waits",
        INFRA,
        strike=_login,
        heal=_login_back,
        away_s=LONG,
        healed=True,
        in_training=False,
    ),
    Fault(
        "disk full",
        "a workspace of 64 MB is filled, the training prints 4 MB more",
        INFRA,
        prepare=_small_disk,
        strike=_fill,
        alone=True,
    ),
    Fault(
        "workspace removed",
        "the whole workspace is removed",
        INFRA,
        strike=_remove_workspace,
        healed=True,
        in_training=False,
        alone=True,
    ),
    Fault("jobs removed", "all job folders are removed", INFRA, strike=_remove_jobs, healed=True, alone=True),
    Fault(
        "runner file cut",
        "the runner's file is truncated in the middle of a run",
        INFRA,
        strike=_break_runner_file,
        healed=True,
    ),
    Fault(
        "runner file cut before",
        "the runner's file of an earlier run was truncated",
        frozenset(),
        prepare=_prepared_runner_file,
        healed=True,
        names_node=False,
    ),
    Fault("log becomes a FIFO", "worker logs are replaced by FIFOs", INFRA, strike=_fifo, healed=True, alone=True),
    Fault("slot locks", "slot locks hold rubbish", INFRA, strike=_slot_locks, healed=True),
    Fault("claims removed", "the claims folder is removed", INFRA, strike=_claims, healed=True),
    Fault(
        "packet loss",
        "30 % of the node's packets are lost",
        INFRA,
        strike=_loss_rule(30),
        healed=True,
        in_training=False,
    ),
)
