"""The files that a job leaves: are they there, are they new, what is in them."""

from __future__ import annotations

import fnmatch
import glob
import os

from .files import Json

HASH_LIMIT = 2 * 1024**3
# Paddle's launcher writes the whole environment into these: they never leave the node.
SECRET = ("envlog.*", "backup_env.*", "*.??????.log")  # the last is <job id>.<pod name>.log


def is_secret(path: str) -> bool:
    """Whether it is a file of the launcher that may hold secrets."""
    name = os.path.basename(path)
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in SECRET)


def matches(root: str, pattern: str) -> list[str]:
    """Paths relative to `root`, a folder's files included; a file of exactly that name comes before a pattern."""
    whole = os.path.join(root, pattern)
    found = []
    for path in [whole] if os.path.lexists(whole) else sorted(glob.glob(whole, recursive=True)):
        if os.path.isdir(path):
            found += [os.path.join(top, name) for top, _, names in os.walk(path) for name in sorted(names)]
        else:
            found.append(path)
    return [os.path.relpath(path, root) for path in found if not is_secret(path)]


def examine(root: str, path: str, since_ns: int) -> Json:
    """An output (tipcflow.domain.OutputFile).

    Args:
        since_ns: time stamp of a file that was written just before the first command: the same clock, with the
            same granularity, as that of the file. File systems that keep whole seconds are given that second.
    """
    whole = os.path.join(root, path)
    try:
        stat = os.stat(whole)
        digest = _sha256_if_readable(whole) if stat.st_size <= HASH_LIMIT else ""
    except OSError:
        return {"path": path, "exists": False}
    when = stat.st_mtime_ns
    fresh = when >= since_ns or (when % 10**9 == 0 and when >= since_ns // 10**9 * 10**9)
    return {"path": path, "exists": True, "fresh": fresh, "size": stat.st_size, "sha256": digest}


def _sha256_if_readable(path: str) -> str:
    """'' for one that is there, but another user's: whoever fetches it hears why it cannot be had."""
    try:
        return sha256(path)
    except PermissionError:
        return ""


def sha256(path: str) -> str:
    """The file's hash, in hexadecimal."""
    import hashlib

    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        for piece in iter(lambda: handle.read(1 << 20), b""):
            digest.update(piece)
    return digest.hexdigest()


def expected(root: str, patterns: list[str], since_ns: int) -> list[Json]:
    """Every expected output; a pattern that nothing matches is one that does not exist."""
    found = []
    for pattern in patterns:
        whole = os.path.join(root, pattern)
        paths = [pattern] if os.path.lexists(whole) else matches(root, pattern) or [pattern]
        found += [examine(root, path, since_ns) for path in paths]
    return found
