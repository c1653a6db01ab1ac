"""Who made which nodes: written before each thing is made, so that a killed owner's leftovers can be found.

Every set of nodes (an instance) has a folder with `state.json` and `owner.lock`. The owner holds the lock as long
as it lives; the kernel frees it when the owner dies, however it dies. A folder whose lock is free is left over.
A registry per user and machine lists the folders, so that leftovers in other homes are found too.
"""

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from devcluster.local_nodes.processes import start_time
from tipcflow.domain import InfraError

LOCK_DEADLINE_S = 60.0


@dataclass
class State:
    """What an instance consists of; JSON in `state.json`.

    Attributes:
        id: eight hexadecimal digits; part of every name that the instance gives away.
        kind: namespaces or loopback.
        folder: of the instance; holds keys, logs and workspaces.
        bridge: this machine's end of its cable to the switch, '' for loopback.
        links: the switch's side of each node's cable, by node.
        processes: (pid, start time) of each node's outermost processes.
        owner: (pid, start time) of the process that made the nodes.
    """

    id: str
    kind: str
    folder: str
    bridge: str = ""
    links: dict[str, str] = field(default_factory=dict)
    processes: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    owner: tuple[int, int] = (0, 0)
    schema_version: int = 1

    @property
    def marker(self) -> str:
        """How the environment entry begins that every process of the nodes has."""
        return f"TIPCFLOW_LOCAL_NODE={self.id}/"

    def save(self) -> None:
        """Write it, whole or not at all."""
        path = Path(self.folder, "state.json")
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(asdict(self), indent=1))
        draft.replace(path)


class Ownership:
    """The lock that tells a living owner from a dead one."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / "owner.lock").open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        """Let go of it; harmless when done already."""
        self._file.close()


def registry() -> Path:
    """This user's folder of known instances on this machine."""
    mine = Path(tempfile.gettempdir(), f"tipcflow-{os.getuid()}")
    folder = Path("/run/tipcflow") if os.geteuid() == 0 else mine
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.geteuid():
        raise InfraError(
            f"{folder} belongs to another user", hint="remove it, or set TMPDIR to a folder of your own"
        )
    return folder


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """One process of this user at a time looks for free names and networks, or for leftovers.

    Raises:
        InfraError: another one held the lock for too long.
    """
    path = registry() / "lock"
    deadline = time.monotonic() + LOCK_DEADLINE_S
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise InfraError(f"another set-up of local nodes has held {path} for too long") from error
                time.sleep(0.02)
        yield


def new(home: Path, kind: str) -> tuple[State, Ownership]:
    """A new instance below `home`; call it under `locked`, or a sweep takes it for left over."""
    identity = secrets.token_hex(4)
    folder = home / "nodes" / identity
    folder.mkdir(parents=True, mode=0o700)
    ownership = Ownership(folder)
    state = State(identity, kind, str(folder), owner=(os.getpid(), start_time(os.getpid())))
    state.save()
    _entry(identity).write_text(str(folder))
    return state, ownership


def forget(state: State) -> None:
    """Remove the instance's folder and its entry in the registry."""
    shutil.rmtree(state.folder, ignore_errors=True)
    _entry(state.id).unlink(missing_ok=True)


def left_over(home: Path) -> list[State]:
    """Instances without a living owner: of this home, and of this user's other homes. Call it under `locked`."""
    folders = {path.parent for path in (home / "nodes").glob("*/owner.lock")}
    for entry in registry().glob("*.instance"):
        folder = Path(entry.read_text())
        if folder.is_dir():
            folders.add(folder)
        else:
            entry.unlink(missing_ok=True)
    found = []
    for folder in sorted(folders):
        try:
            Ownership(folder).release()
        except (BlockingIOError, PermissionError):
            continue
        try:
            found.append(State(**json.loads((folder / "state.json").read_text())))
        except (OSError, ValueError, TypeError):
            # Killed before it wrote its state, and so before it made anything.
            found.append(State(folder.name, "", str(folder)))
    return found


def _entry(identity: str) -> Path:
    return registry() / f"{identity}.instance"
