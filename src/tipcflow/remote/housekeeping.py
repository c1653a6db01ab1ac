"""Commands for the maintenance of a workspace, as text."""

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
    """Print the names of all run folders, one per line, possibly repeated; nothing without a workspace."""
    return shlex.join(["/bin/sh", "-c", _RUNS.strip(), "tipcflow", node.workspace])
