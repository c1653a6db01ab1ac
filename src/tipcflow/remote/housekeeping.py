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


# A run that uses a build touches its file `complete`; the lock is held while a build is installed.
_BUILDS = """
set -eu
[ -d "$1" ] || exit 0
cd -- "$1"
for kind in builds wheels; do
    [ -d "$kind" ] || continue
    for folder in "$kind"/*; do
        [ -d "$folder" ] && [ ! -h "$folder" ] || continue
        [ -z "$(find "$folder" -maxdepth 1 -type f -mtime "-$2")" ] || continue
        [ -n "$(find "$folder" -maxdepth 0 -mtime "+$2")" ] || continue
        if [ "$kind" = builds ] && command -v flock > /dev/null; then
            flock -n "$folder.lock" rm -rf -- "$folder" || continue
        else
            rm -rf -- "$folder"
        fi
        printf '%s\\n' "$folder"
    done
done
"""


def remove_builds(node: Node, *, days: int) -> str:
    """Remove framework builds and wheels that no run has used for `days` days; prints their names."""
    return shlex.join(["/bin/sh", "-c", _BUILDS.strip(), "tipcflow", node.cache_folder, str(days)])


def list_runs(node: Node) -> str:
    """Print the names of all run folders, one per line, possibly repeated; nothing without a workspace."""
    return shlex.join(["/bin/sh", "-c", _RUNS.strip(), "tipcflow", node.workspace])
