"""What the runner could not provide for a run: a kind, and the exit code of `environment` and `data` for it.

The kinds are those of `UnmetNeed` in the exit record. An exit code also passes through a shell and a container,
and needs no space on a full disk.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False  # `typing` takes longer to import than most calls of the runner
if TYPE_CHECKING:
    from typing import Mapping

DOWNLOAD, ENVIRONMENT, DATA, DISK, NODE = "download", "environment", "data", "disk", "node"
EXIT_CODES = {DOWNLOAD: 71, ENVIRONMENT: 72, DATA: 73, DISK: 74, NODE: 75}
# Variable of commands that run the runner itself: only their exit codes have these meanings.
AGENT = "TIPCFLOW_AGENT"
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


class Unusable(Exception):
    """What a run needs is unavailable; the message states the reason.

    Attributes:
        failure: the kind.
    """

    def __init__(self, message: str, failure: str) -> None:
        super().__init__(message)
        self.failure = failure


def failure_of(error: object, otherwise: str) -> str:
    """Return the kind of an error, or of the text of another program's error: a full disk has many consequences.

    Args:
        otherwise: the kind unless the disk is the cause.
    """
    cause = getattr(error, "__cause__", None) or error
    if getattr(cause, "errno", None) in DISK_ERRORS:
        return DISK
    text = str(error)
    return DISK if any(os.strerror(number) in text for number in (errno.ENOSPC, errno.EDQUOT)) else otherwise


def unmet_need(env: Mapping[str, str], exit_code: object) -> str | None:
    """Return what a command could not provide; None if it succeeded or did not run the runner.

    Args:
        env: the command's own variables.
    """
    if AGENT not in env:
        return None
    return next((kind for kind, code in EXIT_CODES.items() if code == exit_code), None)
