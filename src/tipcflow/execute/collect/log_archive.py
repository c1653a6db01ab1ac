"""Logs in a run's folder: compressed after the run has ended; readers handle both forms."""

import gzip
import hashlib
import io
import os
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

from tipcflow.remote.runner.outputs import is_secret

ZIPPED = ".gz"
# Compressing smaller files saves no relevant space.
LEAST = 64 * 1024
_LEVEL = 6
_READ = frozenset({".log", ".txt", ".out", ".err", ".jsonl", ".csv"})


def is_log(name: str) -> bool:
    """Whether the name is that of a text log written by a node."""
    plain = plain_name(name)
    return (Path(plain).suffix in _READ or Path(plain).name.startswith("workerlog.")) and not is_secret(plain)


def plain_name(name: str) -> str:
    """Return the name of a file without the suffix of compression."""
    return name.removesuffix(ZIPPED)


def open_kept(path: Path) -> io.BufferedIOBase:
    """Open a stored file, compressed or not; `path` may be either name.

    Raises:
        OSError: the file does not exist or is not readable.
    """
    zipped = path.name.endswith(ZIPPED)
    if not path.is_file():
        zipped, path = not zipped, path.with_name(plain_name(path.name) if zipped else path.name + ZIPPED)
    return gzip.open(path, "rb") if zipped else path.open("rb")


def is_kept(path: Path) -> bool:
    """Whether the file exists under either of its names."""
    return path.is_file() or path.with_name(path.name + ZIPPED).is_file()


def content_hash(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal; for a compressed file that of its uncompressed content.

    A node may have written a file that is only named like a compressed log, or was cut: its own bytes count.

    Raises:
        OSError: the file does not exist or cannot be read.
    """
    try:
        with path.open("rb") if path.is_file() else open_kept(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (gzip.BadGzipFile, EOFError, zlib.error):
        with path.with_name(path.name + ZIPPED).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def compress_logs(folder: Path, *, least: int = LEAST) -> int:
    """Compress the logs of a run that has ended; safe to interrupt and repeat.

    Args:
        folder: the run's folder; only files fetched from nodes (`<step>/<node>/…`) are compressed.
        least: minimum size of a file, bytes.

    Returns:
        the number of compressed files.
    """
    done = 0
    for path in list(_logs(folder)):
        try:
            if path.stat().st_size >= least:
                _compress(path)
                done += 1
        except FileNotFoundError:  # the run was resumed and moved its earlier attempts aside
            continue
    return done


def compress_to(path: Path, target: Path) -> None:
    """Write and sync the compressed content of a file; equal contents have equal compressed files."""
    with path.open("rb") as source, target.open("wb") as raw:
        with gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as packed:
            shutil.copyfileobj(source, packed, 1 << 20)
        raw.flush()
        os.fsync(raw.fileno())


def _logs(folder: Path) -> Iterator[Path]:
    for path in folder.glob("*/*/**/*"):
        plain = not path.name.endswith(ZIPPED) and not path.name.startswith(".")
        if plain and is_log(path.name) and path.is_file() and not path.is_symlink():
            yield path


def _compress(path: Path) -> None:
    """Write and sync the compressed file with the log's modification time, then remove the log."""
    aside = path.with_name(f".{path.name}{ZIPPED}.{os.getpid()}")
    stat = path.stat()
    try:
        compress_to(path, aside)
        os.utime(aside, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        aside.replace(path.with_name(path.name + ZIPPED))
    finally:
        aside.unlink(missing_ok=True)
    path.unlink()
