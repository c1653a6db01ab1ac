"""A control group (cgroup v2) for a job, where the node permits one.

A process started in the group stays in it even if it changes its environment, its session or its parent.
"""

from __future__ import annotations

import fcntl
import glob
import os
import re
import time

from .files import open_regular, save

NAME = "cgroup"  # the file in a job folder that says where it is
USER_MANAGER_S = 3.0


def own_group() -> str:
    """The folder of this process's control group, '' where cgroup v2 is not mounted."""
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
    """Have the user's service manager move this process into a scope of its own, as `systemd-run --user --scope`
    does for a new one: below it the user may make groups. Nothing happens where there is none."""
    from .said import said, tool

    home = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    program = tool("busctl")
    if not program or not os.path.exists(os.path.join(home, "systemd", "private")):
        return
    manager = ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"]
    properties = ["3", "PIDs", "au", "1", str(os.getpid()), "Delegate", "b", "true"]
    properties += ["CollectMode", "s", "inactive-or-failed"]
    words = ["StartTransientUnit", "ssa(sv)a(sa(sv))", f"{name}.scope", "fail", *properties, "0"]
    said([program, "--user", "call", *manager, *words], USER_MANAGER_S, {"XDG_RUNTIME_DIR": home})


class Group:
    """One control group."""

    def __init__(self, path: str) -> None:
        self.path, self.held = path, -1

    def hold(self) -> None:
        """Lock its folder for as long as this process lives: it is in use, though it may be empty."""
        self.held = os.open(self.path, os.O_RDONLY)
        fcntl.flock(self.held, fcntl.LOCK_SH | fcntl.LOCK_NB)

    def enter(self) -> None:
        """Move this process into it; called in a new child, so it must not raise."""
        try:
            procs = os.open(os.path.join(self.path, "cgroup.procs"), os.O_WRONLY)
            os.write(procs, b"0")
            os.close(procs)
        except OSError:
            pass

    def folders(self) -> list[str]:
        """It and the groups below it, the deepest first."""
        return [top for top, _, _ in os.walk(self.path, topdown=False)]

    def pids(self) -> set[int]:
        """All processes in it; those of other pid namespaces have no number here."""
        found: set[int] = set()
        for folder in self.folders():
            try:
                with open(os.path.join(folder, "cgroup.procs")) as handle:
                    found |= {int(line) for line in handle.read().split()}
            except OSError:
                continue
        return found - {0}

    def kill(self) -> None:
        """SIGKILL for all of them at once, where the kernel can (5.14)."""
        try:
            with open(os.path.join(self.path, "cgroup.kill"), "w") as handle:
                handle.write("1")
        except OSError:
            pass

    def close(self) -> None:
        """Remove it; one that is not empty stays."""
        if self.held >= 0:
            os.close(self.held)
            self.held = -1
        for folder in self.folders():
            try:
                os.rmdir(folder)
            except OSError:
                return


def group_name() -> str:
    """A name that no other group has."""
    return f"tipcflow-{os.getpid()}-{time.time_ns():x}"


def remove_unused(base: str) -> None:
    """Remove empty groups of runners that are dead: of a node that lost its power, say."""
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
    """A group for the job of this folder, noted there; None where the node allows none.

    Args:
        name: of the group, unlike all others.
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
    """The group that a job folder names, if it is still there."""
    try:
        with open_regular(os.path.join(folder, NAME)) as handle:
            path = handle.read(4096).decode("utf-8", "replace")
    except OSError:
        return None
    # Only what carries our name: the file could have been written by anybody.
    if not os.path.basename(path).startswith("tipcflow-") or not os.path.exists(f"{path}/cgroup.procs"):
        return None
    return Group(path)
