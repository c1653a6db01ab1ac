"""Access to the files of a run's folder that users may read; nothing outside of the folder."""

import codecs
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

from tipcflow.domain.masking import LineMask, mask
from tipcflow.domain.numbers.units import size as format_size
from tipcflow.execute.collect.log_archive import ZIPPED, open_kept, plain_name
from tipcflow.execute.collect.run_files import KeptFile, RunFiles
from tipcflow.parse import strip_ansi
from tipcflow.remote.paths import safe_name
from tipcflow.remote.runner.outputs import is_secret

# Bytes from the end of a log shown on the page; the download is complete.
TAIL = 64 * 1024
# Bytes before that end, which show whether it begins within a private key or another secret.
_BEFORE = 16 * 1024
# Maximum number of bytes unpacked to find the end of a compressed file; larger than any fetched log.
_UNPACKED = 256 * 1024 * 1024
_BLOCK = 256 * 1024
# Characters of a path; checking its folders takes time proportional to the square of their number.
_LONGEST = 1024
# Maximum number of listed files of one run.
MOST = 2000
# A page waits this long for a file of the object store, seconds.
COPY_S = 20.0
_READ = frozenset({".log", ".txt", ".out", ".err", ".json", ".jsonl", ".yaml", ".yml", ".csv"})


@dataclass(frozen=True)
class RunFile:
    """A fetched file. `path` is relative to the run's folder; `step` is a folder name derived from the step's id;
    `name` is the name of the log, without the suffix of a compressed file.

    `readable`: whether the page serves the file as text; weights and the like are only listed. `stored`: whether
    it is only in the object store.
    """

    path: str
    step: str
    node: str
    name: str
    bytes: int
    readable: bool
    stored: bool = False

    @property
    def is_log(self) -> bool:
        """Whether the file is a log of the work itself: neither a record of the runner nor an artifact."""
        is_work_log = self.name.startswith("logs/") or "workerlog." in self.name or self.name.endswith("train.log")
        return self.readable and is_work_log


def run_folder(home: Path, run_id: str) -> Path | None:
    """Return the folder of a run; None if it does not exist or the id is not a plain file name."""
    folder = home / "runs" / run_id
    return folder if safe_name(run_id) == run_id and folder.is_dir() and not folder.is_symlink() else None


def step_folder(step_id: str) -> str:
    """Return the folder name of a step; '' for an id that is not a valid file name."""
    try:
        return safe_name(step_id)
    except UnicodeEncodeError:
        return ""


def run_files(folder: Path | None, kept: RunFiles | None = None) -> list[RunFile]:
    """Return the fetched files by step and node: logs first, then by name.

    Args:
        folder: the run's folder; None if this machine has none.
        kept: the run's files of all machines.
    """
    files = [_file(folder, path) for path in islice(_plain_files(folder), MOST)] if folder else []
    stored = (file for file in (kept.elsewhere if kept else ()) if not is_secret(file.name))
    files += [_stored_file(file) for file in islice(stored, MOST - len(files))]
    return sorted(files, key=lambda file: (file.step, file.node, not file.is_log, not file.readable, file.name))


def readable(folder: Path, relative: str) -> Path | None:
    """Return the file at a path if users may read it, else None.

    Rejects absolute paths, `..`, symbolic links, launcher files that may contain secrets, and non-text files.
    """
    if len(relative) > _LONGEST:
        return None
    parts = PurePosixPath(relative).parts
    if not parts or "\0" in relative or relative.startswith("/") or ".." in parts:
        return None
    path = folder.joinpath(*parts)
    steps = [folder.joinpath(*parts[: number + 1]) for number in range(len(parts))]
    try:
        if any(step.is_symlink() for step in steps) or not path.is_file():
            return None
        inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError):
        return None
    return path if inside and _may_read(plain_name(path.name)) else None


def stored_copy(kept: RunFiles, relative: str) -> Path | None:
    """Return a copy of a file that is only in the object store, if users may read it, else None.

    Raises:
        InfraError: the object store cannot be reached in time.
    """
    file = kept.kept.get(relative) if kept.objects else None
    if file is None or not _may_read(plain_name(file.name.rpartition("/")[2])):
        return None
    return kept.copy(file, seconds=COPY_S)


def tail(path: Path, most: int = TAIL) -> str:
    """Return the end of a log, without terminal escapes and with secrets masked; the text notes a truncation.

    It begins with a whole line, unless the line is longer than the end.
    """
    with open_kept(path) as file:
        try:
            size = _read_on(file) if path.suffix == ZIPPED else file.seek(0, os.SEEK_END)
            start = max(0, size - most)
            file.seek(max(0, start - _BEFORE))
            before, end = file.read(min(start, _BEFORE)), file.read(most)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            return f"… the file cannot be unpacked: {error} …\n"
    newline = end.find(b"\n") + 1
    # The rest of a line that began before is not shown, unless there is no other.
    rest = 0 if not before or before.endswith(b"\n") or newline == len(end) else newline
    lines = LineMask(cut=start > _BEFORE)
    earlier = lines.feed(_clean(before + end[:rest]))
    shown = lines.feed(_clean(end[rest:])) + lines.flush()
    if before and not rest and not before.endswith(b"\n"):
        shown = (earlier + shown)[-len(_clean(end)) :]
    # The end of a private key hides the lines above it, too.
    shown = mask(shown)
    return f"… the first {format_size(start + rest)} are in the download …\n{shown}" if start else shown


def _clean(data: bytes) -> str:
    text = strip_ansi(data.decode("utf-8", errors="replace")).replace("\r", "\n")
    return "".join(sign for sign in text if sign.isprintable() or sign in "\n\t")


def masked(path: Path) -> Iterator[bytes]:
    """Yield a complete log, unpacked, with secrets masked; other bytes are unchanged."""
    lines = LineMask()
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    with open_kept(path) as file:
        try:
            while block := file.read(_BLOCK):
                yield lines.feed(decoder.decode(block)).encode("utf-8", "surrogateescape")
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            yield f"… the file cannot be unpacked: {error} …\n".encode()
    rest = lines.feed(decoder.decode(b"", final=True)) + lines.flush()
    yield rest.encode("utf-8", "surrogateescape")


def _read_on(file: io.BufferedIOBase) -> int:
    """Return the length of a compressed file's content, which requires reading all of it."""
    while file.read(1 << 20) and file.tell() < _UNPACKED:
        pass
    return file.tell()


def _plain_files(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(subfolder for subfolder in folders if not Path(root, subfolder).is_symlink())
        for name in sorted(names):
            path = Path(root, name)
            deep = len(path.relative_to(folder).parts) >= 3
            if deep and path.is_file() and not path.is_symlink() and not is_secret(plain_name(name)):
                yield path


def _file(folder: Path, path: Path) -> RunFile:
    parts = path.relative_to(folder).parts
    return RunFile(
        path="/".join(parts),
        step=parts[0],
        node=parts[1],
        name=plain_name("/".join(parts[2:])),
        bytes=path.stat().st_size,
        readable=_may_read(plain_name(path.name)),
    )


def _stored_file(file: KeptFile) -> RunFile:
    step, node, *parts = file.path.split("/")
    name = plain_name("/".join(parts))
    return RunFile(file.path, step, node, name, file.bytes, _may_read(name.rpartition("/")[2]), stored=True)


def _may_read(name: str) -> bool:
    is_text = PurePosixPath(name).suffix in _READ or name.startswith("workerlog.")
    return is_text and not is_secret(name)
