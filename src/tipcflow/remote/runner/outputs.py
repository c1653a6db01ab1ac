"""Output files of a job: whether they exist, are new, and intact."""

from __future__ import annotations

import fnmatch
import glob
import os
from typing import Callable

from .files import Json, open_regular, special
from .model_graph import WEIGHTS, model_of

HASH_LIMIT = 2 * 1024**3
# Of a file's start and end: detects zero bytes, and the last record of an archive with its comment.
_FIRST_BYTES = 1 << 16
_ZIP_END = (1 << 16) + 22
_PICKLES = (".pdparams", ".pdopt", ".pkl")
# Paddle's launcher writes the whole environment into these files: they never leave the node. The last is
# <job id>.<pod name>.log, whose pod name is six lowercase letters; `rank.000001.log` is a suite's own.
SECRET = ("envlog.*", "backup_env.*", f"*.{'[a-z]' * 6}.log")


def is_secret(path: str) -> bool:
    """Return whether the path is a file of the launcher that may contain secrets."""
    name = os.path.basename(path)
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in SECRET)


def matches(root: str, pattern: str) -> list[str]:
    """Return paths relative to `root`, including the files of a folder; a file of exactly that name takes
    precedence over a pattern."""
    whole = os.path.join(root, pattern)
    found = []
    for path in [whole] if os.path.lexists(whole) else sorted(glob.glob(whole, recursive=True)):
        if os.path.isdir(path):
            found += [os.path.join(top, name) for top, _, names in os.walk(path) for name in sorted(names)]
        else:
            found.append(path)
    return [os.path.relpath(path, root) for path in found if not is_secret(path)]


def do_nothing() -> None:
    """Default for the work between two pieces of a large file: none."""


def examine(root: str, path: str, since_ns: int, meanwhile: Callable[[], None] = do_nothing) -> Json:
    """Return an output (tipcflow.domain.OutputFile); `skipped` is the reason why an existing file was not read.

    Args:
        since_ns: time stamp of a file that was written just before the first command: the same clock, with
            the same granularity, as that of the file. A time stamp in whole seconds counts as any time
            within that second.
        meanwhile: called repeatedly while a large file is read.
    """
    whole = os.path.join(root, path)
    is_link = os.path.basename(path).startswith("workerlog.") and os.path.islink(whole)
    why = "not a regular file (link)" if is_link else special(whole)
    if why:
        return {"path": path, "exists": True, "fresh": True, "size": 0, "sha256": "", "skipped": why}
    try:
        stat = os.stat(whole)
        digest = _sha256_if_readable(whole, meanwhile) if stat.st_size <= HASH_LIMIT else ""
    except OSError:
        return {"path": path, "exists": False}
    when = stat.st_mtime_ns
    fresh = when >= since_ns or (when % 10**9 == 0 and when >= since_ns // 10**9 * 10**9)
    damage = damage_of(whole, stat.st_size) if stat.st_size and digest else ""
    found = {"path": path, "exists": True, "fresh": fresh, "size": stat.st_size, "sha256": digest}
    return {**found, "damage": damage} if damage else found


def damage_of(path: str, size: int) -> str:
    """Return the damage that the first and the last bytes of a file show, as text; '' for none.

    A file truncated by a full disk or a crash consists of zero bytes, or is a pickle (weights of Paddle) or
    an archive (weights of PyTorch) without its end. The contents are not checked.
    """
    try:
        with open(path, "rb") as handle:
            first = handle.read(_FIRST_BYTES)
            handle.seek(max(0, size - _ZIP_END))
            last = handle.read()
    except OSError:
        return ""
    if not first.strip(b"\0") and not last.strip(b"\0"):
        return "holds only zero bytes"
    pickled = first[:1] == b"\x80" and first[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")
    if pickled and path.endswith(_PICKLES) and not last.endswith(b"."):
        return "is cut off: it is a pickle without its end"
    if first.startswith(b"PK\x03\x04") and b"PK\x05\x06" not in last:
        return "is cut off: it is an archive without its end"
    return ""


def _sha256_if_readable(path: str, meanwhile: Callable[[], None]) -> str:
    """Return the hash, '' for a file of another user: fetching it reports the reason."""
    try:
        return sha256(path, meanwhile)
    except PermissionError:
        return ""


def sha256(path: str, meanwhile: Callable[[], None] = do_nothing) -> str:
    """Return the file's hash, in hexadecimal.

    Raises:
        OSError: the file cannot be read, or is not a regular file.
    """
    import hashlib

    digest = hashlib.sha256()
    with open_regular(path) as handle:
        for piece in iter(lambda: handle.read(1 << 20), b""):
            digest.update(piece)
            meanwhile()
    return digest.hexdigest()


def expected(
    root: str, patterns: list[str], since_ns: int, meanwhile: Callable[[], None] = do_nothing
) -> tuple[list[Json], str]:
    """Return every expected output, and messages about those that are not files.

    A pattern without a match, and anything that is not a regular file, does not exist.
    """
    found = []
    problems = ""
    for pattern in patterns:
        whole = os.path.join(root, pattern)
        paths = [pattern] if os.path.lexists(whole) else matches(root, pattern) or [pattern]
        for path in paths:
            meanwhile()
            one = examine(root, path, since_ns, meanwhile)
            if one.get("skipped"):
                problems += f"; {path} is {one['skipped']}"
                one = {"path": path, "exists": False}
            if path.endswith(WEIGHTS) and one.get("size") and not one.get("damage"):
                one["content"] = model_of(os.path.join(root, path), meanwhile)
            found.append(one)
    return found, problems
