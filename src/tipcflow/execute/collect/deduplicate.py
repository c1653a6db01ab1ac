"""Find the lines of a log that belong to an attempt if an earlier attempt wrote to the same file.

When an attempt starts, the node's runner records the existing logs: size, hashes of the beginning and the end
(`before.json`, docs/reference/job-folder.md). The part of a log that matches the record is an earlier attempt's.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tipcflow.domain import Phase
from tipcflow.execute.collect.folders import earlier_folders
from tipcflow.execute.collect.log_archive import ZIPPED, open_kept

if TYPE_CHECKING:
    from tipcflow.execute.collect.spool import Logged

_PIECE = 1 << 20
BEFORE = "before.json"
# A script that overwrites its log takes longer to write what an earlier attempt wrote.
OFTEN_S = 0.1
_CLOCK = re.compile(rb"\d\d:\d\d:\d\d")
Numbers = Callable[[], Iterable["Logged"]]


def recorded_start(path: Path, folder: Path) -> int | None:
    """Return the byte offset in a log at which the lines of its attempt begin, by the runner's record alone.

    A script that appends to its log leaves an earlier attempt's lines at the beginning: the log still begins with
    the content recorded at the start of the attempt. A script that overwrites its log may write identical lines if
    nothing in it is random, but the log is shorter meanwhile, which the runner sees (`rewritten`).

    Args:
        path: the log, below `folder`.
        folder: folder of the step and node.

    Returns:
        None without a record, or if the runner looked too rarely to see that a log is overwritten.
    """
    record = recorded(folder)
    if record is None:
        return None
    entry = record.files.get(path.relative_to(folder / "files").as_posix()) if _in_root(path, folder) else None
    start = int(entry["size"]) if entry else 0
    if not entry or not start or entry.get("rewritten") or not _still_begins_with(path, entry):
        return 0
    if path.stat().st_size == start:
        # The log was overwritten with the same content, or not written at all.
        return 0 if entry.get("touched") else start
    return start if record.interval_s <= OFTEN_S or _has_times(path, start) else None


def own_start(logged: Numbers, path: Path, folder: Path) -> int:
    """Return the byte offset in a log at which the lines of its attempt begin; for a log without `recorded_start`.

    The part that an earlier attempt wrote, or may have written, counts as that attempt's only if the rest of the
    log goes back: to an iteration before the last recorded one, or to the same values of any metric of any rank.
    Logs without iterations are compared by epoch.

    Limits: if several values are logged per iteration or epoch anyway, a repeated one is not evidence. An attempt
        that ended within the epoch in which the next one starts, or before its first value, looks the same as an
        overwritten log. In these cases the whole log counts.

    Args:
        logged: returns the log's series.
        path: the log, below `folder`.
        folder: folder of the step and node. Without `before.json` (runners before 2026-11-22) the files of earlier
            attempts are compared (`earlier_folders`).
    """
    record = recorded(folder)
    if record is None:
        sizes = sorted(_earlier_sizes(path, folder), reverse=True)
        return next((start for start in sizes if _goes_back(logged(), start)), 0)
    start = int(record.files[path.relative_to(folder / "files").as_posix()]["size"])
    return start if _goes_back(logged(), start) else 0


class Recorded(NamedTuple):
    """What the runner recorded of the logs at the start of an attempt.

    Attributes:
        files: path relative to the suite's root -> entry (docs/reference/job-folder.md).
        interval_s: interval of the checks for overwritten logs, seconds; 1 for runners before 2026-11-24.
    """

    files: dict[str, Any]
    interval_s: float


def recorded(folder: Path) -> Recorded | None:
    """Return the runner's record of an attempt; None without a record."""
    try:
        record = json.loads((folder / BEFORE).read_text())
        files, interval_s = record["files"], float(record.get("look_s", 1.0))
        return Recorded(files, interval_s) if isinstance(files, dict) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _in_root(path: Path, folder: Path) -> bool:
    return path.is_relative_to(folder / "files")


def _still_begins_with(path: Path, entry: dict[str, Any]) -> bool:
    """Whether a log begins with the recorded content: its first bytes, and the bytes before the recorded size."""
    size, ends = int(entry["size"]), int(entry["hashed"])
    with open_kept(path) as file:
        for start, expected in ((0, entry["head"]), (max(0, size - ends), entry["tail"])):
            file.seek(start)
            piece = file.read(min(ends, size))
            if len(piece) < min(ends, size) or hashlib.sha256(piece).hexdigest() != expected:
                return False
    return True


def _has_times(path: Path, start: int) -> bool:
    """Whether the recorded part contains times of day, which no later attempt prints again."""
    with open_kept(path) as file:
        return _CLOCK.search(file.read(min(start, _PIECE))) is not None


def _goes_back(logged: Iterable["Logged"], start: int) -> bool:
    """Whether any metric of any rank goes back: ranks log at different times, and not every line has all
    metrics."""
    import numpy as np

    by_epoch, iterations = False, False
    for series in logged:
        if series.phase is not Phase.TRAIN:
            continue
        counted = series.iteration >= 0
        if counted.any():
            iterations = True
            if _series_goes_back(series, start, counted):
                return True
        elif not iterations and (series.epoch >= 0).any():
            by_epoch = by_epoch or _series_goes_back(series, start, np.asarray(series.epoch >= 0))
    return by_epoch and not iterations


def _series_goes_back(series: "Logged", start: int, counted: Any) -> bool:
    """Whether positions (epoch, iteration) after that byte precede positions before it."""
    import numpy as np

    at = np.asarray(series.offset[counted])
    epoch, iteration = (np.asarray(column[counted], dtype=np.int64) for column in (series.epoch, series.iteration))
    places = (epoch << 32) + iteration
    middle = int(np.searchsorted(at, start))
    if middle in (0, len(places)):
        return False
    before, after = places[:middle], places[middle:]
    if after[0] != before[-1]:
        return bool(after[0] < before[-1])
    return len(np.unique(before)) == len(before) and len(np.unique(after)) == len(after)


def _earlier_sizes(path: Path, folder: Path) -> Iterator[int]:
    """Sizes of the same log as left by earlier attempts, if this log begins with that content."""
    for aside in earlier_folders(folder.parent):
        earlier = aside / folder.name / path.relative_to(folder)
        if earlier.is_file() or earlier.with_name(earlier.name + ZIPPED).is_file():
            size = _common(earlier, path)
            if size:
                yield size


def _common(earlier: Path, path: Path) -> int:
    """Return the size of the earlier file if the other file begins with it, else 0."""
    size = 0
    with open_kept(earlier) as old, open_kept(path) as new:
        while piece := old.read(_PIECE):
            if new.read(len(piece)) != piece:
                return 0
            size += len(piece)
    return size
