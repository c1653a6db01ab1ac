"""Parser of the messages of paddle.distributed.launch about a failed process of its pod.

LAUNCH INFO 2026-11-21 09:30:14,344 Pod failed
LAUNCH ERROR 2026-11-21 09:30:14,345 Container failed !!!
Container rank 0 status failed cmd ['python', '-u', 'train.py'] code 1 log log/workerlog.0
LAUNCH INFO 2026-11-21 09:30:14,345 ------------------------- ERROR LOG DETAIL -------------------------
(a second copy of the tail of the worker's log)
LAUNCH INFO 2026-11-21 09:30:14,345 Exit code 1
"""

import re

from tipcflow.domain import Frozen
from tipcflow.parse.text import strip_ansi

# The second copy extends from here to the launcher's last message.
REPEATS_FROM = "- ERROR LOG DETAIL -"
REPEATS_END = " Exit code "

# The launcher exits with 250 if its worker was aborted (-6) because a peer's connection closed.
PEER_ABORTED = 250

_CONTAINER = re.compile(r"^Container rank (\d+) status (\w+) cmd .* code (-?\d+) log (\S+)", re.MULTILINE)
_EXIT = re.compile(r"^LAUNCH INFO .* Exit code (-?\d+)\s*$", re.MULTILINE)
_POD = re.compile(r"^LAUNCH INFO .* Pod (failed|completed)\s*$", re.MULTILINE)


class LaunchFailure(Frozen):
    """The worker that the launcher reports as failed.

    Attributes:
        rank: the container's rank, -1 if the launcher named none.
        code: the worker's exit code, negative for a signal; 0 if unknown.
        exit_code: the exit code of the launcher itself, -1 if it did not print it.
        log: the worker's log as the launcher names it.
    """

    rank: int = -1
    code: int = 0
    exit_code: int = -1
    log: str = ""

    @property
    def is_collateral(self) -> bool:
        """Return whether the worker aborted only because a peer did; the root cause is then on another node."""
        return self.exit_code == PEER_ABORTED or self.code == -6


def parse_launch(text: str) -> LaunchFailure | None:
    """Parse the launcher's report of a failure; None if the pod completed or the log has no launcher messages."""
    text = strip_ansi(text)
    container = _CONTAINER.search(text)
    pods = _POD.findall(text)
    exits = _EXIT.findall(text)
    code = int(exits[-1]) if exits else -1
    if container is None and "failed" not in pods and code <= 0:
        return None
    return LaunchFailure(
        rank=int(container[1]) if container else -1,
        code=int(container[3]) if container else 0,
        exit_code=code,
        log=container[4] if container else "",
    )
