"""What paddle.distributed.launch says when a process of its pod fails.

LAUNCH INFO 2026-11-21 09:30:14,344 Pod failed
LAUNCH ERROR 2026-11-21 09:30:14,345 Container failed !!!
Container rank 0 status failed cmd ['python', '-u', 'train.py'] code 1 log log/workerlog.0
LAUNCH INFO 2026-11-21 09:30:14,345 ------------------------- ERROR LOG DETAIL -------------------------
(the tail of the worker's log once more)
LAUNCH INFO 2026-11-21 09:30:14,345 Exit code 1
"""

import re

from tipcflow.domain import Frozen
from tipcflow.parse.text import strip_ansi

# The second copy goes from here to the launcher's last word.
REPEATS_FROM = "- ERROR LOG DETAIL -"
REPEATS_END = " Exit code "

# The launcher ends with 250 when its worker was aborted (-6) because a peer's connection closed.
PEER_ABORTED = 250

_CONTAINER = re.compile(r"^Container rank (\d+) status (\w+) cmd .* code (-?\d+) log (\S+)", re.MULTILINE)
_EXIT = re.compile(r"^LAUNCH INFO .* Exit code (-?\d+)\s*$", re.MULTILINE)
_POD = re.compile(r"^LAUNCH INFO .* Pod (failed|completed)\s*$", re.MULTILINE)


class LaunchFailure(Frozen):
    """Which worker the launcher blames.

    Attributes:
        rank: the container's rank, -1 when the launcher named none.
        code: the worker's exit code, negative for a signal; 0 when unknown.
        exit_code: what the launcher itself ended with, -1 when it did not get to say it.
        log: the worker's log as the launcher names it.
    """

    rank: int = -1
    code: int = 0
    exit_code: int = -1
    log: str = ""

    @property
    def victim(self) -> bool:
        """Whether the worker only aborted because a peer did; the culprit is on another node then."""
        return self.exit_code == PEER_ABORTED or self.code == -6


def parse_launch(text: str) -> LaunchFailure | None:
    """What the launcher says about a failure; None when the pod completed or no launcher spoke."""
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
