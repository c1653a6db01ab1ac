"""Files of a node -> this machine: what arrived is what is there, and what was interrupted goes on."""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, TypeVar

from tipcflow.domain import InfraError
from tipcflow.remote.fetching import Listed, hash_beginning, portions
from tipcflow.transport import Transport

T = TypeVar("T")
# A link that breaks again and again is taken up again as long as something arrives: so often in a row it may bring
# nothing, and after so long nothing of a large file is tried again (others wait 600 s for one who closes a step).
TRIES = 2
LARGE_S = 450.0
HASH_S = 120.0
# Files that are no logs, whatever their size. Any other name may be that of a training log.
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


class Twice(Protocol):
    """Does something over a node's connection, and once more over a new one when that broke."""

    def __call__(self, do: Callable[[Transport], T], /) -> T:
        """What it gives; InfraError when both failed."""
        ...


@dataclass
class Fetched:
    """What came of it.

    Attributes:
        listed: name -> what the node said of the file.
        notes: what was cut, in words, of files of weights.
        spoiled: what did not arrive as it is there, in words; a log that was cut is among it.
    """

    listed: dict[str, Listed] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    spoiled: list[str] = field(default_factory=list)

    def add(self, other: "Fetched") -> None:
        """Take over what came of more files."""
        self.listed |= other.listed
        self.notes += other.notes
        self.spoiled += other.spoiled


class FolderFetch:
    """One folder of a node, fetched into one of this machine.

    Each file is compared with the SHA-256 that the node has of it. One that differs is fetched once more, by a new
    listing (it may have grown); one that still differs is told of. A large one that was interrupted, in this
    process or in one that died, lies beside as `.<name>.part` and goes on there if the node's file still begins
    with it; else it begins again. One that may not be read there (a container's root wrote it) is told of, too.

    Args:
        twice: reaches the node.
        node: its name.
        root: the folder there.
        local: the folder here.
        limit: bytes of the beginning of a file that are fetched; the cut is told.
        sent: files that are here already, by name; None for those that are not there.
        clock: seconds, ascending.
    """

    def __init__(
        self,
        twice: Twice,
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
        """Fetch those of the files that are there.

        Raises:
            InfraError: the node cannot be reached, or a name leads out of the folder; what arrived stays.
        """
        found = Fetched()
        wanted = [self._inside(name) for name in names]
        found.listed |= self._keep_sent(wanted)
        for some in portions([name for name in wanted if name not in self._sent]):
            for name, listed in self._list(some).items():
                self._take(name, listed, found)
        return found

    def _take(self, name: str, listed: Listed, found: Fetched) -> None:
        """Have one of the listed files, and say what came of it."""
        if listed.special:
            found.spoiled.append(f"{name} of node {self._node} is lost: skipped, not a regular file")
            return
        if not listed.readable:
            found.spoiled.append(
                f"{name} of node {self._node} could not be fetched: the node's user may not read it there"
            )
            return
        now = self._one(name, listed)
        found.listed[name] = now or listed
        if now is None:
            found.spoiled.append(
                f"{name} of node {self._node} could not be fetched: what arrived is not what is there "
                "(SHA-256 differs), also the second time"
            )
        elif now.size > self._limit:
            # What a log says after the cut is not known: a step with such a log is no pass.
            (found.notes if Path(name).suffix in _WEIGHTS else found.spoiled).append(
                f"{name} on node {self._node} has {now.size} bytes: only the first {self._limit} were fetched "
                "(limit TIPCFLOW_LOG_LIMIT_MB)"
            )

    def _inside(self, name: str) -> str:
        if not (self._local / name).resolve().is_relative_to(self._local.resolve()):
            raise InfraError(f"node {self._node} named {name!r}, which would leave the folder", node=self._node)
        return name

    def _keep_sent(self, wanted: Iterable[str]) -> dict[str, Listed]:
        """Keep those that came already."""
        kept = {}
        for name in wanted:
            if (data := self._sent.get(name)) is not None:
                path = self._local / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                kept[name] = Listed(len(data), hashlib.sha256(data).hexdigest())
        return kept

    def _list(self, names: list[str]) -> dict[str, Listed]:
        """What the node says of them; small ones arrive along with it."""
        return self._twice(lambda transport: transport.get_many(self._root, names, self._local, limit=self._limit))

    def _one(self, name: str, listed: Listed) -> Listed | None:
        """Have a file as it is there; what the node said of it, None when it arrived otherwise twice."""
        for _ in range(2):
            if self._has(name, listed) or self._get(name, listed):
                return listed
            listed = self._list([name]).get(name, listed)
        return listed if self._has(name, listed) else None

    def _has(self, name: str, listed: Listed) -> bool:
        path = self._local / name
        size = min(listed.size, self._limit)
        return path.is_file() and path.stat().st_size == size and _sha256(path) == listed.sha256

    def _get(self, name: str, listed: Listed) -> bool:
        """Fetch a file by itself; whether it is the listed one now."""
        path, remote = self._local / name, f"{self._root}/{name}"
        part = path.with_name(f".{path.name}.part")
        size = min(listed.size, self._limit)

        def go_on(transport: Transport, starts: list[int]) -> None:
            if not _begins_with(transport, remote, part, size):
                part.unlink(missing_ok=True)
            starts.append(_size(part))
            transport.get_more(remote, part, limit=size)

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
        """Go on until it is through, or nothing arrives any more, or it takes too long.

        Args:
            go_on: also notes where it starts: what was here already may have turned out to be of no use.
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
    """Artefacts that were written to after their job had ended and listed them, in words.

    Args:
        local: where the job's files are here, its `artefacts.json` among them.
        limit: bytes that listed hashes are of.
    """
    try:
        told = json.loads((local / "artefacts.json").read_text())
        ended = {str(one["path"]): str(one["sha256"]) for one in told if one.get("sha256")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    return [
        f"{name} on node {node} was written to after the step had ended"
        for name, now in listed.items()
        if now.size <= limit and ended.get(name, now.sha256) != now.sha256
    ]


def listed_artefacts(local: Path) -> list[str] | None:
    """The fresh files that a job's runner listed at its end, None when it did not get to that.

    Args:
        local: where the job's files are here.
    """
    try:
        told = json.loads((local / "artefacts.json").read_text())
        return [str(one["path"]) for one in told if one.get("exists", True) and one.get("fresh", True)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _begins_with(transport: Transport, remote: str, part: Path, size: int) -> bool:
    """Whether a file on a node still begins with what was fetched of it."""
    have = _size(part)
    if not 0 < have <= size:
        return False
    done = transport.run(hash_beginning(remote, have), timeout=HASH_S)
    return done.exit_code == 0 and done.stdout.split()[:1] == [_sha256(part).encode()]


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
