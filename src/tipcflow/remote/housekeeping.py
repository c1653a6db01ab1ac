"""The text of commands that look after a workspace, not after a run."""

import shlex

from tipcflow.domain import Node

_RUNS = """
set -eu
[ -d "$1" ] || exit 0
cd -- "$1"
for folder in runs/* jobs/*; do
    if [ -d "$folder" ] && [ ! -h "$folder" ]; then printf '%s\\n' "${folder#*/}"; fi
done
"""


def list_runs(node: Node) -> str:
    """Print the names of all run folders, one per line, some twice; nothing where no workspace is."""
    return shlex.join(["/bin/sh", "-c", _RUNS.strip(), "tipcflow", node.workspace])
