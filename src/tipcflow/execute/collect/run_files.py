"""A run's fetched files, wherever they are: in the run's folder on this machine, or in the object store."""

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run.kept_files import StoredDocument
from tipcflow.execute.collect.kept_files import folders_of, kept_by_attempt
from tipcflow.execute.collect.log_archive import ZIPPED, content_hash
from tipcflow.execute.objects.copies import copied
from tipcflow.execute.objects.object_store import MissingObjectError, ObjectStore, object_store
from tipcflow.remote import paths

if TYPE_CHECKING:
    from tipcflow.store import Store

_ATTEMPT = ".attempt"


@dataclass(frozen=True)
class KeptFile:
    """A file that was fetched from a node.

    Attributes:
        path: path in the run's folder, without the suffix of compression.
        name: path in the attempt's folder.
        object: name of its object, '' if it is not in the object store.
        bytes: size of the object.
    """

    path: str
    key: AttemptKey
    name: str
    sha256: str
    object: str
    bytes: int


class RunFiles:
    """The files that the closers of a run's attempts kept.

    Args:
        home: TIPCFLOW_HOME of this machine.
        objects: default: `object_store()`.
    """

    def __init__(self, store: "Store", run: str, home: Path, objects: ObjectStore | None = None) -> None:
        self._store, self.run, self.home = store, run, home
        self.folder = home / "runs" / run
        self.objects = objects or object_store()

    @cached_property
    def kept(self) -> dict[str, KeptFile]:
        """Path in the run's folder -> file."""
        folders = folders_of(self._store, self.run)
        document = self._store.documents.get(self.run, StoredDocument) if self.objects else None
        by_attempt = document.root if document else {}
        kept = {}
        for key, hashes in kept_by_attempt(self._store, self.run).items():
            stored = by_attempt.get(key, {})
            for name, sha256 in hashes.items():
                written = next((each for each in (name, name + ZIPPED) if each in stored), "")
                path, its_object = f"{folders[key]}/{name}", written and object_name(self.run, key, written)
                kept[path] = KeptFile(path, key, name, sha256, its_object, stored.get(written, 0))
        return kept

    @property
    def url(self) -> str:
        """The place of the run's files in the object store, '' without one."""
        return f"{self.objects.url}/{run_prefix(self.run)}" if self.objects else ""

    @property
    def elsewhere(self) -> Iterator[KeptFile]:
        """Files that are not in the run's folder here, but in the object store."""
        kept = self.kept.values() if self.objects else ()
        return (file for file in kept if file.object and self.local(file) is None)

    def local(self, file: KeptFile) -> Path | None:
        """Return the path of a file in the run's folder here, compressed or not; None if it is not here.

        The folder of a step's last attempt may be that of an earlier attempt that was closed on this machine.
        """
        mark = self.folder / file.path.partition("/")[0] / _ATTEMPT
        is_other = self.objects is not None and mark.is_file() and mark.read_text() != str(file.key.attempt)
        return None if is_other else existing(self.folder / file.path)

    def is_unchanged(self, file: KeptFile) -> bool:
        """Whether the run's folder here has the file with its content."""
        return self.local(file) is not None and content_hash(self.folder / file.path) == file.sha256

    def open_path(self, path: str) -> Path | None:
        """Return a file of the run where it can be opened; None if it is neither here nor in the object store.

        Args:
            path: in the run's folder, without the suffix of compression.

        Raises:
            InfraError: it is only in the object store, which cannot be reached, or has another content.
        """
        file = self.kept.get(path)
        if file is None:
            return existing(self.folder / path)
        return self.local(file) or self.copy(file)

    def copy(self, file: KeptFile, *, seconds: float | None = None, fresh: bool = False) -> Path | None:
        """Return a copy of a file in the object store; None if it is not there.

        Args:
            seconds: deadline; None: by the size of the file.
            fresh: whether to read the object even if this machine has a copy.

        Raises:
            InfraError: the object store cannot be reached, or has another content.
        """
        if self.objects is None or not file.object:
            return None
        try:
            return copied(
                self.objects,
                file.object,
                home=self.home,
                sha256=file.sha256,
                count=file.bytes,
                content_hash=content_hash if file.object.endswith(f"/{file.name}") else _unpacked_hash,
                seconds=seconds,
                fresh=fresh,
            )
        except MissingObjectError:
            return None

    def fetch_own(self, name: str, *, beside: str) -> bool:
        """Copy a file of the run itself, such as its certificate, from the object store to the run's folder here.

        Args:
            beside: the file that belongs to it, such as its signature; removed here if the object store has none.

        Returns:
            whether the object store has the file.

        Raises:
            InfraError: the object store cannot be reached.
        """
        if self.objects is None:
            return False
        self.folder.mkdir(parents=True, exist_ok=True)
        mark = uuid.uuid4().hex[:8]
        asides = {each: self.folder / f".{mark}-{each}" for each in (name, beside)}
        try:
            # `beside` is written before `name`: read in reverse, a pair that does not match is never newer.
            self.objects.get(f"{run_prefix(self.run)}/{name}", asides[name])
            with contextlib.suppress(MissingObjectError):
                self.objects.get(f"{run_prefix(self.run)}/{beside}", asides[beside])
            if asides[beside].is_file():
                asides[beside].replace(self.folder / beside)
            else:
                (self.folder / beside).unlink(missing_ok=True)
            asides[name].replace(self.folder / name)
        except MissingObjectError:
            return False
        finally:
            for aside in asides.values():
                aside.unlink(missing_ok=True)
        return True

    def of_step(self, step: str, name: str) -> list[Path]:
        """Return the files `<node>/<name>` of a step's last attempt, where they can be opened.

        Raises:
            InfraError: as `copy`.
        """
        folder = paths.safe_name(step)
        here = {str(path.relative_to(self.folder)) for path in (self.folder / folder).glob(f"*/{name}")}
        kept = (
            {path for path in self.kept if PurePosixPath(path).match(f"{folder}/*/{name}")}
            if self.objects
            else set()
        )
        return [path for path in map(self.open_path, sorted(here | kept)) if path is not None]


def existing(path: Path) -> Path | None:
    """Return the path of a file under the name that it has, compressed or not; None without a file."""
    return next((each for each in (path, path.with_name(path.name + ZIPPED)) if each.is_file()), None)


def _unpacked_hash(path: Path) -> str:
    """Return the hash of a compressed file's content."""
    return content_hash(path.with_name(path.name.removesuffix(ZIPPED)))


def object_name(run: str, key: AttemptKey, name: str) -> str:
    """Return the name of an attempt's file in the object store."""
    return f"{run_prefix(run)}/{paths.safe_name(key.step)}~{key.attempt}/{name}"


def run_prefix(run: str) -> str:
    """Return the folder of a run in the object store."""
    return f"runs/{run}"
