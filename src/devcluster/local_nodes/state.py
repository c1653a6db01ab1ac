"""State of local nodes: recorded before each resource is created, so that leftovers of a killed owner are found.

Every set of nodes (an instance) has a folder with `state.json` and `owner.lock`. The owner holds the lock while it
runs; the kernel releases it when the owner ends, for any reason. A folder with a free lock is a leftover. A
registry per user and machine lists the folders, so that leftovers in other homes are found too.
"""

import contextlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from devcluster.local_nodes.processes import start_time
from tipcflow.domain import InfraError
from tipcflow.domain.numbers.units import limit

LOCK_DEADLINE_S = 60.0


@dataclass
class State:
    """The resources of an instance; JSON in `state.json`.

    Attributes:
        id: eight hexadecimal digits; part of every resource name of the instance.
        kind: namespaces or loopback.
        folder: folder of the instance with keys, logs and workspaces.
        bridge: this machine's end of its link to the switch, '' for loopback.
        links: the switch's end of each node's link, by node.
        processes: (pid, start time) of each node's outermost processes.
        owner: (pid, start time) of the process that created the nodes.
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
        """Return the prefix of the environment entry that all processes of the nodes have."""
        return f"TIPCFLOW_LOCAL_NODE={self.id}/"

    def save(self) -> None:
        """Write the state atomically."""
        path = Path(self.folder, "state.json")
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(asdict(self), indent=1))
        draft.replace(path)


class Ownership:
    """The lock that distinguishes a living owner from a dead one.

    Raises:
        Timeout: another process holds the lock.
    """

    def __init__(self, folder: Path) -> None:
        self._lock = FileLock(folder / "owner.lock", timeout=0, thread_local=False, fallback_to_soft=False)
        self._lock.acquire()

    def release(self) -> None:
        """Release the lock. Idempotent."""
        self._lock.release()


def registry() -> Path:
    """Return this user's folder of known instances on this machine."""
    of_user = Path(tempfile.gettempdir(), f"tipcflow-{os.getuid()}")
    folder = Path("/run/tipcflow") if os.geteuid() == 0 else of_user
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.geteuid():
        raise InfraError(
            f"{folder} belongs to another user", hint="remove it, or set TMPDIR to a folder of your own"
        )
    return folder


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Lock the search for free names, networks and leftovers to one process of this user.

    Raises:
        InfraError: another process held the lock until the deadline.
    """
    path = registry() / "lock"
    lock = FileLock(path, timeout=LOCK_DEADLINE_S, poll_interval=0.02, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise InfraError(f"another set-up of local nodes has held {path} for {limit(LOCK_DEADLINE_S)}") from error
    try:
        yield
    finally:
        lock.release()


def new(home: Path, kind: str) -> tuple[State, Ownership]:
    """Create an instance below `home`; call it under `locked`, or a sweep treats it as a leftover."""
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


def leftovers(home: Path) -> list[State]:
    """Return instances without a living owner in this home and this user's other homes. Call it under `locked`."""
    return [instance for instance in known(home) if not has_owner(instance)]


def known(home: Path) -> list[State]:
    """Return all instances in this home and this user's other homes."""
    folders = {path.parent for path in (home / "nodes").glob("*/owner.lock")}
    for entry in registry().glob("*.instance"):
        try:
            folder = Path(entry.read_text())
        except FileNotFoundError:  # removed meanwhile
            continue
        if folder.is_dir():
            folders.add(folder)
        else:
            entry.unlink(missing_ok=True)
    return [_read(folder) for folder in sorted(folders)]


def has_owner(state: State) -> bool:
    """Whether a living process owns the instance."""
    try:
        Ownership(Path(state.folder)).release()
    except (Timeout, PermissionError):
        return True
    except FileNotFoundError:  # removed meanwhile
        return False
    return False


def _read(folder: Path) -> State:
    try:
        return State(**json.loads((folder / "state.json").read_text()))
    except (OSError, ValueError, TypeError):
        # The owner was killed before it wrote the state, so it created no resource.
        return State(folder.name, "", str(folder))


def _entry(identity: str) -> Path:
    return registry() / f"{identity}.instance"
