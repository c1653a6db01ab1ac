"""Snapshots of suites on disk, so that every task of a run, on any worker, deploys the same bytes.

`<home>/suites/archives/<sha256>.tar.gz` and `<sha256>.names`; shared by runs that test the same files. Each run
adds an empty file `<sha256>.<mark>.mark`: a later task that finds it uses the same folder as the run's first task.
"""

import json
import os
import uuid
from pathlib import Path

from tipcflow.domain import InfraError
from tipcflow.domain.run_documents import SourceDocument
from tipcflow.execute.source.snapshot import Snapshot


def keep_snapshot(home: Path, snapshot: Snapshot) -> SourceDocument:
    """Write a snapshot below `home` unless it exists; return the document that `kept_snapshot` needs."""
    folder = _folder(home)
    folder.mkdir(parents=True, exist_ok=True)
    _write_once(folder / f"{snapshot.sha256}.names", json.dumps(sorted(snapshot.names)).encode())
    _write_once(folder / f"{snapshot.sha256}.tar.gz", snapshot.archive)
    mark = uuid.uuid4().hex
    _mark(folder, snapshot.sha256, mark).touch()
    return SourceDocument(
        commit=snapshot.commit,
        sha256=snapshot.sha256,
        mark=mark,
        params_file=snapshot.params_file,
        params_text=snapshot.params_text,
    )


def kept_archive(home: Path, sha256: str) -> bytes:
    """Return the archive with that hash.

    Raises:
        InfraError: not found: TIPCFLOW_HOME is not shared by all workers, or was cleaned too early.
    """
    return _read(_folder(home) / f"{sha256}.tar.gz")


def kept_names(home: Path, sha256: str) -> frozenset[str]:
    """Return the paths of the archive's files, relative to the suite's root.

    Raises:
        InfraError: as `kept_archive`.
    """
    return frozenset(json.loads(_read(_folder(home) / f"{sha256}.names")))


def kept_snapshot(home: Path, document: SourceDocument) -> Snapshot:
    """Return the snapshot that `keep_snapshot` wrote.

    Raises:
        InfraError: the snapshot no longer exists, or this is not the folder in which the run was resolved.
    """
    if document.mark:
        _read(_mark(_folder(home), document.sha256, document.mark))
    return Snapshot(
        commit=document.commit,
        archive=kept_archive(home, document.sha256),
        sha256=document.sha256,
        params_file=document.params_file,
        params_text=document.params_text,
        names=kept_names(home, document.sha256),
    )


def _folder(home: Path) -> Path:
    return home / "suites" / "archives"


def _mark(folder: Path, sha256: str, mark: str) -> Path:
    return folder / f"{sha256}.{mark}.mark"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InfraError(
            f"the suite's snapshot {path.name} is not on this machine",
            hint="all workers must share one TIPCFLOW_HOME; if it was removed, clear the run from its first task",
        ) from error


def _write_once(path: Path, data: bytes) -> None:
    if path.is_file() and path.stat().st_size == len(data):
        os.utime(path)  # in use: retention is based on modification times
        return
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    aside.write_bytes(data)
    aside.replace(path)
