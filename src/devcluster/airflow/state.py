"""Owner of a home's Airflow: ensures one instance at a time and finds leftovers of a killed owner."""

import contextlib
import json
import os
import secrets
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from devcluster.airflow.supervisor import GRACE_S, KILL_S, MARK
from devcluster.local_nodes.processes import kill_if_same, marked, start_time, wait_until
from tipcflow.domain import InfraError


@dataclass
class State:
    """One Airflow instance; JSON in `stack.json`.

    Attributes:
        id: eight hexadecimal digits, in the environment of all its processes.
        owner: (pid, start time) of the process that started the instance.
        keeper: (pid, start time) of the supervisor process.
    """

    id: str
    owner: tuple[int, int]
    keeper: tuple[int, int] = (0, 0)
    url: str = ""

    @property
    def marker(self) -> str:
        """Return the environment entry of all the instance's processes."""
        return f"{MARK}={self.id}"

    def save(self, folder: Path) -> None:
        """Write the state atomically."""
        draft = folder / "stack.json.new"
        draft.write_text(json.dumps(asdict(self)))
        draft.replace(folder / "stack.json")


class Ownership:
    """The lock on a folder, held until its owner ends, for any reason.

    Raises:
        InfraError: another process holds the lock; the message names it and its Airflow's URL.
    """

    def __init__(self, folder: Path) -> None:
        self._lock = FileLock(folder / "owner.lock", timeout=0, thread_local=False, fallback_to_soft=False)
        try:
            self._lock.acquire()
        except Timeout as error:
            other = read_state(folder)
            at = f" by process {other.owner[0]}, at {other.url}" if other else ""
            raise InfraError(
                f"the Airflow of {folder} is already running{at}",
                hint="end it (`tipcflow airflow down`, or Ctrl-C in the demo), or use another TIPCFLOW_HOME",
            ) from error

    def release(self) -> None:
        """Release the lock. Idempotent."""
        self._lock.release()


def new_state(url: str) -> State:
    """Return a new identity, owned by this process."""
    return State(secrets.token_hex(4), (os.getpid(), start_time(os.getpid())), url=url)


def read_state(folder: Path) -> State | None:
    """Return the content of `stack.json`, None if the file is missing."""
    try:
        content = json.loads((folder / "stack.json").read_text())
        return State(content["id"], tuple(content["owner"]), tuple(content["keeper"]), content["url"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remove_leftovers(folder: Path, report: Callable[[str], None]) -> None:
    """End leftover processes of a killed owner's Airflow; call it as the folder's owner.

    Raises:
        InfraError: the processes do not end.
    """
    old = read_state(folder)
    if old is None:
        return
    # The supervisor detects its owner's death after a short delay; without a supervisor, no wait is needed.
    with contextlib.suppress(InfraError):
        wait_until(
            lambda: start_time(old.keeper[0]) != old.keeper[1],
            "the supervisor did not end",
            deadline_s=GRACE_S + KILL_S,
        )
    kill_if_same(*old.keeper)
    left = kill_marked(old)
    if left:
        report(f"ended the Airflow that a killed process (pid {old.owner[0]}) left behind")
    (folder / "stack.json").unlink(missing_ok=True)


def kill_marked(state: State) -> int:
    """SIGKILL all processes with the state's marker. Returns: their number.

    Raises:
        InfraError: the processes do not end.
    """
    seen: set[int] = set()

    def has_ended() -> bool:
        """Signal the processes that are left; return whether there are none."""
        left = set(marked(state.marker)) - {os.getpid()}
        seen.update(left)
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        return not left

    wait_until(has_ended, "processes of a local Airflow did not end", deadline_s=10.0)
    return len(seen)
