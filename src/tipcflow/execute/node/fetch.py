"""Fetch files of a node: verified by hash, and interrupted transfers are resumed."""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, TypeVar

from tipcflow.domain import InfraError
from tipcflow.domain.numbers.units import size
from tipcflow.remote.fetching import Listed, hash_beginning, portions
from tipcflow.transport import Transport

T = TypeVar("T")
# A connection that breaks repeatedly is resumed while data arrives: the limits are the consecutive attempts
# without data, and the total time for a large file (other processes wait 600 s for the closer of a step).
TRIES = 2
LARGE_S = 450.0
HASH_S = 120.0
# Files that are not logs, whatever their size. A file with any other name may be a training log.
_WEIGHTS = frozenset(
    {
        ".pdparams",
        ".pdopt",
        ".pdiparams",
        ".pdmodel",
        ".pdstates",
        ".pth",
        ".pt",
        ".bin",
        ".npy",
        ".npz",
        ".onnx",
        ".tar",
    }
)


class RetryOnce(Protocol):
    """Runs an operation over a node's connection, and a second time over a new connection if the first breaks."""

    def __call__(self, do: Callable[[Transport], T], /) -> T:
        """Return the result; InfraError if both attempts failed."""
        ...


@dataclass
class Fetched:
    """The result of a fetch.

    Attributes:
        listed: name -> the node's entry for the file.
        notes: messages about weight files that were truncated.
        spoiled: messages about files that did not arrive intact, truncated logs included.
    """

    listed: dict[str, Listed] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    spoiled: list[str] = field(default_factory=list)

    def add(self, other: "Fetched") -> None:
        """Add the result for more files."""
        self.listed |= other.listed
        self.notes += other.notes
        self.spoiled += other.spoiled


class FolderFetch:
    """Fetches files of one folder on a node into one folder of this machine.

    Each file is compared with the node's SHA-256. A file that differs is listed and fetched a second time (it may
    have grown); if it still differs, the result reports it. An interrupted large file, of this process or of one
    that died, is stored as `.<name>.part` and resumed if the node's file still begins with it; otherwise it is
    fetched from the start. Files that are not readable on the node (written by a container's root) are reported,
    too.

    Args:
        twice: runs operations on the node.
        node: name of the node.
        root: folder on the node.
        local: folder on this machine.
        limit: maximum bytes fetched of one file; truncation is reported.
        sent: files that have arrived already, by name; None for files that do not exist.
        clock: monotonic clock, seconds.
    """

    def __init__(
        self,
        twice: RetryOnce,
        *,
        node: str,
        root: str,
        local: Path,
        limit: int,
        sent: Mapping[str, bytes | None] = MappingProxyType({}),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._twice, self._node, self._root, self._local, self._limit = twice, node, root, local, limit
        self._sent = {name: data for name, data in sent.items() if data is None or len(data) <= limit}

    def fetch(self, names: Iterable[str]) -> Fetched:
        """Fetch those of the files that exist.

        Raises:
            InfraError: the node is unreachable, or a name leads out of the folder; fetched files stay.
        """
        fetched = Fetched()
        wanted = [self._inside(name) for name in names]
        fetched.listed |= self._keep_sent(wanted)
        for some in portions([name for name in wanted if name not in self._sent]):
            for name, listed in self._list(some).items():
                self._take(name, listed, fetched)
        return fetched

    def _take(self, name: str, listed: Listed, fetched: Fetched) -> None:
        """Fetch one of the listed files and record the result."""
        if listed.special:
            fetched.spoiled.append(
                f"{name} of node {self._node} is lost: skipped, not a regular file ({listed.special})"
            )
            return
        if not listed.readable:
            fetched.spoiled.append(
                f"{name} of node {self._node} could not be fetched: not readable for the node's user"
            )
            return
        now = self._fetch_one(name, listed)
        fetched.listed[name] = now or listed
        if now is None:
            fetched.spoiled.append(
                f"{name} of node {self._node} could not be fetched: the received content differs twice "
                "from the file on the node (SHA-256)"
            )
        elif now.size > self._limit:
            # The rest of a truncated log is unknown: a step with such a log does not pass.
            (fetched.notes if Path(name).suffix in _WEIGHTS else fetched.spoiled).append(
                f"{name} on node {self._node} has {size(now.size)}: "
                f"only the first {size(self._limit)} were fetched (limit TIPCFLOW_LOG_LIMIT_MB)"
            )

    def _inside(self, name: str) -> str:
        if not (self._local / name).resolve().is_relative_to(self._local.resolve()):
            raise InfraError(
                f"node {self._node} sent the name {name!r}, which would leave the folder", node=self._node
            )
        return name

    def _keep_sent(self, wanted: Iterable[str]) -> dict[str, Listed]:
        """Store the files that have arrived already."""
        stored = {}
        for name in wanted:
            if (data := self._sent.get(name)) is not None:
                path = self._local / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                stored[name] = Listed(len(data), hashlib.sha256(data).hexdigest())
        return stored

    def _list(self, names: list[str]) -> dict[str, Listed]:
        """List the files on the node; small ones are fetched with the listing."""
        return self._twice(lambda transport: transport.get_many(self._root, names, self._local, limit=self._limit))

    def _fetch_one(self, name: str, listed: Listed) -> Listed | None:
        """Fetch a file; return the node's entry for it, None if the content differed twice."""
        for _ in range(2):
            if self._has(name, listed) or self._get(name, listed):
                return listed
            listed = self._list([name]).get(name, listed)
        return listed if self._has(name, listed) else None

    def _has(self, name: str, listed: Listed) -> bool:
        path = self._local / name
        expected = min(listed.size, self._limit)
        return path.is_file() and path.stat().st_size == expected and _sha256(path) == listed.sha256

    def _get(self, name: str, listed: Listed) -> bool:
        """Fetch a single file; return whether it matches the listing now."""
        path, remote = self._local / name, f"{self._root}/{name}"
        part = path.with_name(f".{path.name}.part")
        end = min(listed.size, self._limit)

        def go_on(transport: Transport, starts: list[int]) -> None:
            if not _begins_with(transport, remote, part, end):
                part.unlink(missing_ok=True)
            starts.append(_size(part))
            transport.get_more(remote, part, limit=end)

        try:
            self._persist(go_on, part)
        except FileNotFoundError:
            return False
        if _sha256(part) != listed.sha256:
            part.unlink()
            return False
        part.replace(path)
        return True

    def _persist(self, go_on: Callable[[Transport, list[int]], None], part: Path) -> None:
        """Resume until the file is complete, no data arrives, or the time limit is exceeded.

        Args:
            go_on: also records its start offset: a partial file may have turned out to be unusable.
        """
        until, idle = self._clock() + LARGE_S, 0
        starts: list[int] = []

        def once(transport: Transport) -> None:
            go_on(transport, starts)

        while True:
            starts.clear()
            try:
                self._twice(once)
                return
            except InfraError:
                idle = 0 if starts and _size(part) > starts[0] else idle + 1
                if idle >= TRIES or self._clock() >= until:
                    raise


def changed_since(local: Path, listed: Mapping[str, Listed], *, node: str, limit: int) -> list[str]:
    """Return messages about artefacts that were written to after their job had ended and listed them.

    Args:
        local: folder of the job's files on this machine, including `artefacts.json`.
        limit: number of bytes that listed hashes cover.
    """
    try:
        artefacts = json.loads((local / "artefacts.json").read_text())
        ended = {
            str(artefact["path"]): str(artefact["sha256"]) for artefact in artefacts if artefact.get("sha256")
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    return [
        f"{name} on node {node} was written to after the step had ended"
        for name, now in listed.items()
        if now.size <= limit and ended.get(name, now.sha256) != now.sha256
    ]


def listed_artefacts(local: Path) -> list[str] | None:
    """Return the fresh files that a job's runner listed at its end, None without a list.

    Args:
        local: folder of the job's files on this machine.
    """
    try:
        artefacts = json.loads((local / "artefacts.json").read_text())
        return [
            str(artefact["path"])
            for artefact in artefacts
            if artefact.get("exists", True) and artefact.get("fresh", True)
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _begins_with(transport: Transport, remote: str, part: Path, end: int) -> bool:
    """Whether a file on a node still begins with its partially fetched copy."""
    have = _size(part)
    if not 0 < have <= end:
        return False
    done = transport.run(hash_beginning(remote, have), timeout=HASH_S)
    return done.exit_code == 0 and done.stdout.split()[:1] == [_sha256(part).encode()]


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
