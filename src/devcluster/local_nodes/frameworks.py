"""The frameworks of the local nodes' Python environment, for their cluster file."""

import subprocess
from pathlib import Path

from tipcflow.domain import Framework

_MODULES: dict[str, Framework] = {"paddle": "paddlepaddle", "torch": "torch"}
# Looks for the modules without importing them, which takes seconds.
_PROGRAM = "import importlib.util, sys; print(*filter(importlib.util.find_spec, sys.argv[1:]))"
_LIMIT_S = 30.0


def frameworks_of(python: Path) -> tuple[Framework, ...] | None:
    """Return the frameworks that an interpreter can import; None if it has none or does not run.

    An interpreter without a framework is not declared as such: a run's inspection of the node names what is wrong.
    """
    try:
        done = subprocess.run(
            [str(python), "-c", _PROGRAM, *_MODULES],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            cwd="/",
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return tuple(framework for module, framework in _MODULES.items() if module in done.stdout.split()) or None
