"""Commands that fetch files, as text, and the parser of their output.

Fetched files are compared with the node's listing, so every listing has sizes and SHA-256.
"""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tipcflow.remote.helping import helper
from tipcflow.remote.runner.outputs import SECRET

# Files up to this size are sent with their listing, up to this total; larger files are fetched one by one.
EACH, TOGETHER = 1 << 20, 16 << 20
FETCH_S = 330.0  # deadline on the node: longer than the controller waits
# Limit for the words of a command: the kernel of a node accepts 128 KiB.
_WORDS = 60_000

_PACK = """
set -eu
cd -- "$1"
limit=$2 each=$3 left=$4 number=0
shift 4
for name do
    shift
    number=$((number + 1))
    kind=
    case $name in
        workerlog.* | */workerlog.*) if [ -h "./$name" ]; then kind=link; fi ;;
    esac
    if [ -z "$kind" ] && [ -e "./$name" ] && [ ! -f "./$name" ] && [ ! -d "./$name" ]; then
        kind=device
        if [ -p "./$name" ]; then kind=FIFO; elif [ -S "./$name" ]; then kind=socket; fi
    fi
    if [ "$kind" ]; then
        printf '%s 0 !%s\\n' "$number" "$kind"
        continue
    fi
    if [ ! -f "./$name" ] || [ -h "./$name" ]; then continue; fi
    if ! size=$(wc -c < "./$name"); then
        printf '%s 0 -\\n' "$number"
        continue
    fi
    size=$((size))
    hash=$(head -c "$limit" < "./$name" | sha256sum)
    printf '%s %s %s\\n' "$number" "$size" "${hash%% *}"
    if [ "$size" -le "$each" ] && [ "$size" -le "$left" ]; then
        left=$((left - size))
        set -- "$@" "./$name"
    fi
done
echo
[ $# -gt 0 ] || set -- --files-from=/dev/null
exec tar -cf - EXCLUDES "$@"
"""


@dataclass(frozen=True)
class Listed:
    """A file on a node: its size in bytes, and the SHA-256 of what may be fetched of its beginning; neither is
    known, 0 and '', of one that may not be read there, and of one that is `special`: `FIFO`, `socket`, `device`,
    or `link` for a worker log that is a link; '' for regular files."""

    size: int
    sha256: str
    special: str = ""

    @property
    def readable(self) -> bool:
        """Whether the node's user may read the file; a container may have written it as root."""
        return bool(self.sha256)


def pack_files(root: str, names: Sequence[str], *, limit: int, each: int = EACH, together: int = TOGETHER) -> str:
    """List the existing files (relative to `root`), and print a tar archive of the small ones.

    First a line per file: its number among `names` (from 1), size, SHA-256 of its first `limit` bytes (0 and `-`
    when it cannot be read, 0 and `!` with its type of a FIFO, a socket or a device, which is never opened); then
    an empty line; then the archive. Links to files are left out, and what may hold secrets is never packed. A
    worker log that is a link is listed like a FIFO: launchers write files, and a link may lead to any file.

    Args:
        each, together: bytes of the largest file, and of all files, in the archive.
    """
    excludes = " ".join(f"--exclude={shlex.quote(pattern)}" for pattern in SECRET)
    numbers = (str(number) for number in (limit, min(each, limit), together))
    text = _PACK.strip().replace("EXCLUDES", excludes)
    words = ["/bin/sh", "-c", text, "tipcflow", root, *numbers, *names]
    return shlex.join(helper("fetch", root, FETCH_S, words))


def list_matching(root: str, patterns: Sequence[str]) -> str:
    """Print the names (relative to `root`) of the regular files that match shell patterns, NUL-terminated."""
    text = """
cd -- "$1" || exit 0
shift
IFS=
for pattern do
    for name in $pattern; do
        if [ -f "./$name" ] && [ ! -h "./$name" ]; then printf '%s\\0' "$name"; fi
    done
done
"""
    return shlex.join(["/bin/sh", "-c", text.strip(), "tipcflow", root, *patterns])


def hash_beginning(path: str, size: int) -> str:
    """Print the SHA-256 of a file's first `size` bytes; fails if it is not a regular file."""
    text = '[ -f "$1" ] && head -c "$2" < "$1" | sha256sum'
    return shlex.join(helper("fetch", path, FETCH_S, ["/bin/sh", "-c", text, "tipcflow", path, str(size)]))


def listed_in(head: Iterable[bytes], names: Sequence[str]) -> dict[str, Listed]:
    """Parse the first lines of the output of `pack_files` to entries by name.

    Raises:
        ValueError: invalid lines, for example of a login script that prints to stdout.
    """
    entries = {}
    for line in head:
        number, size, sha256 = line.decode("ascii").split()
        if not 1 <= int(number) <= len(names):
            raise ValueError(number)
        special = sha256.removeprefix("!") if sha256.startswith("!") else ""
        known = "" if special or sha256 == "-" else sha256
        entries[names[int(number) - 1]] = Listed(int(size), known, special)
    return entries


def portions(names: Sequence[str]) -> list[list[str]]:
    """Split the names into lists that are short enough for one command."""
    parts: list[list[str]] = []
    room = 0
    for name in names:
        length = len(shlex.quote(name).encode()) + 1
        if length > room:
            parts.append([])
            room = _WORDS
        room -= length
        parts[-1].append(name)
    return parts
