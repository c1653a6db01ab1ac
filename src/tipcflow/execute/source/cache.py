"""Snapshots of suites on disk, so that every task of a run, on any worker, deploys the same bytes.

`<home>/suites/archives/<sha256>.tar.gz` and `<sha256>.names`; shared by runs that test the same files. Each run
adds an empty file `<sha256>.<mark>.mark`: a later task that finds it uses the same folder as the run's first task.
With an object store both files are objects, too (`suites/<name>`), and a task uses those if its folder lacks them.
"""

import hashlib
import json
import os
import uuid
from pathlib import Path

from tipcflow.domain import InfraError
from tipcflow.domain.run_documents import SourceDocument
from tipcflow.execute.objects.copies import copied
from tipcflow.execute.objects.object_store import MissingObjectError, object_store
from tipcflow.execute.source.snapshot import Snapshot

OBJECTS = "suites"
# An object that a run uses is written again before retention regards it as unused.
FRESH_S = 10 * 86_400.0


def keep_snapshot(home: Path, snapshot: Snapshot) -> SourceDocument:
    """Write a snapshot below `home` unless it exists; return the document that `kept_snapshot` needs.

    Raises:
        InfraError: the object store cannot be reached.
    """
    folder = _folder(home)
    folder.mkdir(parents=True, exist_ok=True)
    names = json.dumps(sorted(snapshot.names)).encode()
    files = {f"{snapshot.sha256}.names": names, f"{snapshot.sha256}.tar.gz": snapshot.archive}
    for name, data in files.items():
        _write_once(folder / name, data)
    mark, objects = "", object_store()
    if objects is None:
        mark = uuid.uuid4().hex
        _mark(folder, snapshot.sha256, mark).touch()
    else:
        for name in files:
            objects.keep(f"{OBJECTS}/{name}", folder / name, fresh_s=FRESH_S)
    return SourceDocument(
        commit=snapshot.commit,
        sha256=snapshot.sha256,
        names_sha256=hashlib.sha256(names).hexdigest(),
        mark=mark,
        params_file=snapshot.params_file,
        params_text=snapshot.params_text,
    )


def kept_names(home: Path, document: SourceDocument) -> frozenset[str]:
    """Return the paths of the archive's files, relative to the suite's root.

    Raises:
        InfraError: as `kept_snapshot`.
    """
    return frozenset(json.loads(_read(home, f"{document.sha256}.names", document.names_sha256)))


def kept_snapshot(home: Path, document: SourceDocument) -> Snapshot:
    """Return the snapshot that `keep_snapshot` wrote.

    Raises:
        InfraError: the snapshot no longer exists, this is not the folder in which the run was resolved, or the
            object store cannot be reached.
    """
    if document.mark:
        _read(home, _mark(_folder(home), document.sha256, document.mark).name, "")
    return Snapshot(
        commit=document.commit,
        archive=_read(home, f"{document.sha256}.tar.gz", document.sha256),
        sha256=document.sha256,
        params_file=document.params_file,
        params_text=document.params_text,
        names=kept_names(home, document),
    )


def _folder(home: Path) -> Path:
    return home / "suites" / "archives"


def _mark(folder: Path, sha256: str, mark: str) -> Path:
    return folder / f"{sha256}.{mark}.mark"


def _read(home: Path, name: str, sha256: str) -> bytes:
    """Return the content of a file of the folder; without it, that of its object.

    Args:
        sha256: hash of the object; '' for a file that is never an object.
    """
    path = _folder(home) / name
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        missing = error
    objects = object_store()
    if objects is None or not sha256:
        raise InfraError(
            f"the suite's snapshot {name} is not on this machine",
            hint="all workers must share one TIPCFLOW_HOME, or use one TIPCFLOW_STORE; if it was removed, clear "
            "the run from its first task",
        ) from missing
    try:
        return copied(
            objects, f"{OBJECTS}/{name}", home=home, sha256=sha256, count=0, content_hash=_hash
        ).read_bytes()
    except MissingObjectError as error:
        raise InfraError(
            f"the suite's snapshot {name} is neither on this machine nor in the object store {objects.url}",
            hint="all workers must use one TIPCFLOW_STORE; if it was removed, clear the run from its first task",
        ) from error


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_once(path: Path, data: bytes) -> None:
    if path.is_file() and path.stat().st_size == len(data):
        os.utime(path)  # in use: retention is based on modification times
        return
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    aside.write_bytes(data)
    aside.replace(path)
