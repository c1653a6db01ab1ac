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


# A run that uses an entry of the cache touches a file at its top; the lock is held while an entry is made.
_CACHE = """
set -eu
[ -d "$1" ] || exit 0
cd -- "$1"
now=$(date +%s)
entries() {
    for folder in builds/* wheels/* packages/* data/* downloads/*; do
        [ -d "$folder" ] && [ ! -h "$folder" ] || continue
        used=$(find "$folder" -maxdepth 1 -exec stat -c %Y {} + | sort -n | tail -n 1)
        printf '%s %s\\n' "${used:-$now}" "$folder"
    done | sort -n
}
remove() {
    if [ -e "$1.lock" ] && command -v flock > /dev/null; then
        flock -n "$1.lock" rm -rf -- "$1" || return 0
    else
        rm -rf -- "$1"
    fi
    printf '%s\\n' "$1"
}
entries | while read -r used folder; do
    [ $((now - used)) -le $(($2 * 86400)) ] || remove "$folder"
done
[ "$3" -gt 0 ] || exit 0
total=0
for folder in builds wheels packages data downloads; do
    [ ! -d "$folder" ] || total=$((total + $(du -sk "$folder" | cut -f 1)))
done
entries | while read -r used folder; do
    [ "$total" -gt "$3" ] && [ $((now - used)) -gt $(($4 * 86400)) ] || continue
    total=$((total - $(du -sk "$folder" | cut -f 1)))
    remove "$folder"
done
"""
# A longer run is not expected; what a run uses must stay until it ends.
_IN_USE_DAYS = 2


def clean_cache(node: Node, *, days: int) -> str:
    """Remove from the node's cache what no run has used for `days` days: framework builds, wheels, packages of
    suites, data and downloads. While the cache is then larger than `cache_gb` of the node, remove what was unused
    longest, unless it was used in the last two days. Prints the names of what it removes.
    """
    limit = int((node.cache_gb or 0) * 1_000_000)
    words = ["tipcflow", node.cache_folder, str(days), str(limit), str(_IN_USE_DAYS)]
    return shlex.join(["/bin/sh", "-c", _CACHE.strip(), *words])


def list_runs(node: Node) -> str:
    """Print the names of all run folders, one per line, possibly repeated; nothing without a workspace."""
    return shlex.join(["/bin/sh", "-c", _RUNS.strip(), "tipcflow", node.workspace])
