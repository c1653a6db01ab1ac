"""Control group (cgroup v2) of a job, if the node permits one.

A process started in the group stays in it even if it changes its environment, session or parent.
"""

from __future__ import annotations

import fcntl
import glob
import os
import re
import time

from .files import open_regular, save

NAME = "cgroup"  # the file in a job folder that names the group
USER_MANAGER_S = 3.0


def own_group() -> str:
    """Return the folder of this process's control group, '' if cgroup v2 is not mounted."""
    try:
        with open("/proc/self/cgroup") as handle:
            path = re.search(r"^0::(/.*)$", handle.read(), re.M)
        with open("/proc/self/mountinfo") as handle:
            mounts = [line.split() for line in handle if " - cgroup2 " in line]
    except OSError:
        return ""
    if not path or not mounts or path.group(1).startswith("/.."):
        return ""
    root, place = (re.sub(r"\\(\d{3})", lambda one: chr(int(one.group(1), 8)), text) for text in mounts[0][3:5])
    inside = path.group(1) if root == "/" else path.group(1)[len(root) :]
    if root != "/" and not path.group(1).startswith(root):
        return ""
    return os.path.join(place, inside.strip("/")).rstrip("/")


def scope_of_own(name: str) -> None:
    """Move this process into a scope of its own through the user's service manager, like `systemd-run --user
    --scope`: the user may create groups below it. No effect without a service manager.

    The service manager responds before it has moved the process, so this waits, at most `USER_MANAGER_S`.
    """
    from .programs import find_program, run_program

    home = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    program = find_program("busctl")
    if not program or not os.path.exists(os.path.join(home, "systemd", "private")):
        return
    manager = ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"]
    properties = ["3", "PIDs", "au", "1", str(os.getpid()), "Delegate", "b", "true"]
    properties += ["CollectMode", "s", "inactive-or-failed"]
    words = ["StartTransientUnit", "ssa(sv)a(sa(sv))", f"{name}.scope", "fail", *properties, "0"]
    before, until = own_group(), time.monotonic() + USER_MANAGER_S
    code, _ = run_program([program, "--user", "call", *manager, *words], USER_MANAGER_S, {"XDG_RUNTIME_DIR": home})
    while code == 0 and own_group() == before and time.monotonic() < until:
        time.sleep(0.01)


class Group:
    """One control group."""

    def __init__(self, path: str) -> None:
        self.path, self.held = path, -1

    def hold(self) -> None:
        """Lock the group's folder while this process runs: the group is in use, although it may be empty."""
        self.held = os.open(self.path, os.O_RDONLY)
        fcntl.flock(self.held, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def enter(self) -> None:
        """Move this process into the group; called in a new child, so it must not raise."""
        try:
            procs = os.open(os.path.join(self.path, "cgroup.procs"), os.O_WRONLY)
            os.write(procs, b"0")
            os.close(procs)
        except OSError:
            pass

    def folders(self) -> list[str]:
        """Return the group and the groups below it, deepest first."""
        return [top for top, _, _ in os.walk(self.path, topdown=False)]

    def pids(self) -> set[int]:
        """Return the pids of all processes in the group, except those of other pid namespaces."""
        found: set[int] = set()
        for folder in self.folders():
            try:
                with open(os.path.join(folder, "cgroup.procs")) as handle:
                    found |= {int(line) for line in handle.read().split()}
            except OSError:
                continue
        return found - {0}

    def kill(self) -> None:
        """Send SIGKILL to all processes at once, if the kernel supports it (5.14)."""
        try:
            with open(os.path.join(self.path, "cgroup.kill"), "w") as handle:
                handle.write("1")
        except OSError:
            pass

    def close(self) -> None:
        """Remove the group, unless it is not empty."""
        if self.held >= 0:
            os.close(self.held)
            self.held = -1
        for folder in self.folders():
            try:
                os.rmdir(folder)
            except OSError:
                return


def group_name() -> str:
    """Return a unique group name."""
    return f"tipcflow-{os.getpid()}-{time.time_ns():x}"


def remove_unused(base: str) -> None:
    """Remove empty groups of dead runners, for example after a power failure of the node."""
    for path in glob.glob(os.path.join(glob.escape(base), "tipcflow-*")):
        try:
            file = os.open(path, os.O_RDONLY)
        except OSError:
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rmdir(path)
        except OSError:
            pass  # in use, or not empty
        finally:
            os.close(file)


def make_group(folder: str, name: str) -> Group | None:
    """Create a group for the job of this folder and store its path there; None if the node permits none.

    Args:
        name: unique name of the group.
    """
    for attempt in range(2):
        base = own_group()
        if not base:
            return None
        path = os.path.join(base, name)
        try:
            os.mkdir(path)
            group = Group(path)
            group.hold()
            remove_unused(base)
            save(os.path.join(folder, NAME), path)
            return group
        except PermissionError:
            if attempt:
                return None
            scope_of_own(name)
        except OSError:
            return None
    return None


def group_of(folder: str) -> Group | None:
    """Return the group that a job folder names, if it still exists."""
    try:
        with open_regular(os.path.join(folder, NAME)) as handle:
            path = handle.read(4096).decode("utf-8", "replace")
    except OSError:
        return None
    # Only groups with tipcflow's prefix: any process may have written the file.
    if not os.path.basename(path).startswith("tipcflow-") or not os.path.exists(f"{path}/cgroup.procs"):
        return None
    return Group(path)
