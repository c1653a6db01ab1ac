"""Whether tests/compose can run here: starts its engine, makes the base images, and runs a container of them.

    python -m tests.support.compose.prepare

Exit code 75 if the machine cannot do that, such as one without namespaces or without a package index; the last
line of the output is the reason. The images are kept for tests/compose.
"""

import subprocess
import sys

from tests.support.compose.engine import compose_engine, missing

UNAVAILABLE = 75


def why_unavailable() -> str:
    """The reason why no container of the base images runs here, in one line; '' if one does."""
    if why := missing():
        return why
    try:
        with compose_engine() as engine:
            engine.run("run", "--rm", engine.images()["PYTHON_IMAGE"], "true")
    except (AssertionError, OSError, subprocess.SubprocessError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return lines[-1] if lines else type(error).__name__
    return ""


if __name__ == "__main__":
    reason = why_unavailable()
    sys.stdout.write(f"{reason}\n")
    sys.exit(UNAVAILABLE if reason else 0)
