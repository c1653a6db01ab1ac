"""Logs in a run's folder: compressed once the run has ended, and read the same before and after."""

import gzip
import hashlib
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from tipcflow.remote.runner.outputs import is_secret

ZIPPED = ".gz"
# Smaller files gain nothing that anybody would notice, and are handier as they are.
LEAST = 64 * 1024
_LEVEL = 6
_READ = frozenset({".log", ".txt", ".out", ".err", ".jsonl", ".csv"})


def is_log(name: str) -> bool:
    """Whether a file of that name is text that nodes write line by line."""
    plain = plain_name(name)
    return (Path(plain).suffix in _READ or Path(plain).name.startswith("workerlog.")) and not is_secret(plain)


def plain_name(name: str) -> str:
    """The name that a file has, or had before it was compressed."""
    return name.removesuffix(ZIPPED)


def open_kept(path: Path) -> io.BufferedIOBase:
    """A kept file's content, compressed or not; `path` may be either of its names.

    Raises:
        OSError: it is not there, or cannot be read.
    """
    zipped = path.name.endswith(ZIPPED)
    if not path.is_file():
        zipped, path = not zipped, path.with_name(plain_name(path.name) if zipped else path.name + ZIPPED)
    return gzip.open(path, "rb") if zipped else path.open("rb")


def is_kept(path: Path) -> bool:
    """Whether the file is there, under either of its names."""
    return path.is_file() or path.with_name(path.name + ZIPPED).is_file()


def content_hash(path: Path) -> str:
    """SHA-256 of a file in hexadecimal; of its content where only the compressed file is there.

    Raises:
        OSError: it is not there, or cannot be unpacked.
    """
    with path.open("rb") if path.is_file() else open_kept(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def compress_logs(folder: Path, *, least: int = LEAST) -> int:
    """Compress the logs of a run that has ended; may be interrupted, and run again.

    Args:
        folder: the run's; only what was fetched from nodes, `<step>/<node>/…`, is touched.
        least: bytes of the smallest file that is compressed.

    Returns:
        how many files were compressed.
    """
    done = 0
    for path in list(_logs(folder)):
        try:
            if path.stat().st_size >= least:
                _compress(path)
                done += 1
        except FileNotFoundError:  # the run goes on, and put its earlier attempts aside
            continue
    return done


def _logs(folder: Path) -> Iterator[Path]:
    for path in folder.glob("*/*/**/*"):
        plain = not path.name.endswith(ZIPPED) and not path.name.startswith(".")
        if plain and is_log(path.name) and path.is_file() and not path.is_symlink():
            yield path


def _compress(path: Path) -> None:
    """The compressed file is whole, on disk and as old as the log was before the log goes."""
    aside = path.with_name(f".{path.name}{ZIPPED}.{os.getpid()}")
    stat = path.stat()
    try:
        with path.open("rb") as source, aside.open("wb") as raw:
            with gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as packed:
                shutil.copyfileobj(source, packed, 1 << 20)
            raw.flush()
            os.fsync(raw.fileno())
        os.utime(aside, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        aside.replace(path.with_name(path.name + ZIPPED))
    finally:
        aside.unlink(missing_ok=True)
    path.unlink()
