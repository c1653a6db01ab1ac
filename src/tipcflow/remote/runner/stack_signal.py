"""Stack dumps of Python processes on request: by a module on their PYTHONPATH, and a signal.

PYTHONFAULTHANDLER is not sufficient: Paddle handles SIGABRT itself, and the process would end.
"""

from __future__ import annotations

import os
import signal

from .files import save

NUMBER = signal.SIGRTMAX - 3  # unused: libraries and launchers use the first and the last real-time signals
# Runs in every Python of the job, of any version; the environment's own module of that name runs, too.
HOOK = f"""# Written by tipcflow: on signal {int(NUMBER)} all threads' stacks go to stderr.
import sys


def ask():
    import _signal
    import faulthandler

    if _signal.getsignal({int(NUMBER)}) == _signal.SIG_DFL:
        faulthandler.register({int(NUMBER)}, all_threads=True)


def chain():
    import os

    here, ours = os.path.dirname(os.path.abspath(__file__)), sys.modules.pop(__name__)
    sys.path[:] = [place for place in sys.path if place != here]
    try:
        import sitecustomize  # the environment's own
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault("sitecustomize", ours)


try:
    ask()
except Exception:  # an old Python, no stderr: it cannot be asked
    pass
chain()
"""


def prepare(env: dict[str, str], folder: str) -> None:
    """Change an environment so that its Python processes can dump their stacks on request.

    Args:
        folder: the job's; no change if its path contains a colon, which would split the PYTHONPATH entry.
    """
    place = os.path.join(folder, "python")
    if ":" in place:
        return
    try:
        os.makedirs(place, exist_ok=True)
        save(os.path.join(place, "sitecustomize.py"), HOOK)
    except OSError:
        return
    env["PYTHONPATH"] = ":".join([place, *[part for part in [env.get("PYTHONPATH", "")] if part]])
    env["TIPCFLOW_PYTHON"] = place  # for a container, whose image may have its own PYTHONPATH
    env["PYTHONFAULTHANDLER"] = env.get("PYTHONFAULTHANDLER") or "1"


def can_be_asked(pid: int) -> bool:
    """Return whether the process handles the signal, which would end any other process."""
    try:
        with open(f"/proc/{pid}/status") as handle:
            caught = next(line for line in handle if line.startswith("SigCgt:"))
    except (OSError, StopIteration):
        return False
    return bool(int(caught.split()[1], 16) >> (NUMBER - 1) & 1)
