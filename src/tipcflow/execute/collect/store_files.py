"""Write a run's fetched files to the object store, and find those that are missing where the run is judged."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.domain import InfraError
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.numbers.units import counted, first_names
from tipcflow.domain.run.kept_files import LostFilesDocument, StoredDocument
from tipcflow.execute.collect.kept_files import hashes_in, kept_by_attempt, kept_files
from tipcflow.execute.collect.log_archive import LEAST, ZIPPED, compress_to, is_log
from tipcflow.execute.collect.run_files import KeptFile, RunFiles, existing, object_name, run_prefix
from tipcflow.execute.objects.copies import FOLDER
from tipcflow.execute.objects.deadline import for_each
from tipcflow.execute.objects.object_store import DamagedObjectError, ObjectStore, object_store, transfer_s

if TYPE_CHECKING:
    from tipcflow.store import Store


def store_files(store: "Store", run: str, key: AttemptKey, folder: Path, home: Path) -> str:
    """Write an attempt's files to the object store, if there is one; return why some are missing there, or ''.

    A file that cannot be written is not an error of the attempt: it is still here, and the judge of the run writes
    it, or reports that it is missing.

    Args:
        folder: the attempt's folder on this machine.
        home: TIPCFLOW_HOME, where large logs are compressed.
    """
    objects = object_store()
    if objects is None:
        return ""
    hashes = kept_by_attempt(store, run).get(key, {})
    here = {name: path for name in hashes if (path := existing(folder / name)) is not None}
    errors = _put_all(store, run, objects, {(key, name): path for name, path in here.items()}, home)
    if not errors:
        return ""
    names = first_names(sorted(name for _, name in errors))
    missing = f"{counted(len(errors), 'file')} of {len(here)} not stored: {names}"
    return f"{missing}; {_message(next(iter(errors.values())))}"


def note_lost_files(store: "Store", run: str, home: Path) -> LostFilesDocument:
    """Compare what was kept with the files here and in the object store, and store the difference for the checks.

    Files that are only here are written to the object store.
    """
    files = RunFiles(store, run, home)
    here: list[KeptFile] = []
    elsewhere: list[KeptFile] = []
    changed: list[str] = []
    for file in files.kept.values():
        if files.is_unchanged(file):
            here.append(file)
        elif files.local(file) is not None and files.objects is None:
            changed.append(file.path)
        else:
            elsewhere.append(file)
    if files.objects is None:
        lost = LostFilesDocument(missing=_sorted(elsewhere), changed=tuple(sorted(changed)), kept=len(files.kept))
    else:
        lost = _compared_with_store(store, files, files.objects, here, elsewhere)
    store.documents.put(run, lost)
    return lost


def certified_files(store: "Store", run: str, folder: Path) -> Mapping[str, str]:
    """Return path -> SHA-256 for the certificate: everything that was kept, and everything in the run's folder.

    A kept file has the hash of the moment at which it was kept, so that a later change or loss shows. With an
    object store, the run's folder here is that of one of several machines.
    """
    kept = kept_files(store, run)
    files = kept if kept and object_store() is not None else {**hashes_in(folder), **kept}
    return dict(sorted(files.items()))


def _compared_with_store(
    store: "Store", files: RunFiles, objects: ObjectStore, here: list[KeptFile], elsewhere: list[KeptFile]
) -> LostFilesDocument:
    """Compare all files with one listing of the store, read what is elsewhere, and write what is only here."""
    missing: list[KeptFile] = []
    changed: list[KeptFile] = []
    errors: list[Exception] = []
    try:
        sizes = {each.name: each.bytes for each in objects.below(run_prefix(files.run))} if files.kept else {}
    except InfraError as away:
        return _lost(files, objects, missing=elsewhere, unstored=here, errors=[away])

    def check(file: KeptFile) -> None:
        # A copy here does not prove that the object still exists. A mounted folder may list a new object late.
        if files.copy(file, fresh=sizes.get(file.object) != file.bytes) is None:
            missing.append(file)

    seconds = transfer_s(sum(file.bytes for file in elsewhere))
    what = f"cannot read all files from the object store {objects.url}"
    for file, error in for_each(elsewhere, check, seconds=seconds, what=what).items():
        (changed if isinstance(error, DamagedObjectError) else missing).append(file)
        errors.append(error)
    again = [file for file in here if not file.object or sizes.get(file.object) != file.bytes]
    paths = {(file.key, file.name): existing(files.folder / file.path) for file in again}
    failed = _put_all(
        store, files.run, objects, {key: path for key, path in paths.items() if path is not None}, files.home
    )
    unstored = [file for file in again if (file.key, file.name) in failed]
    errors += failed.values()
    return _lost(files, objects, missing=missing, changed=changed, unstored=unstored, errors=errors)


def _lost(
    files: RunFiles,
    objects: ObjectStore,
    *,
    missing: Iterable[KeptFile],
    unstored: Iterable[KeptFile],
    errors: Sequence[Exception],
    changed: Iterable[KeptFile] = (),
) -> LostFilesDocument:
    return LostFilesDocument(
        missing=_sorted(missing),
        changed=_sorted(changed),
        unstored=_sorted(unstored),
        kept=len(files.kept),
        url=objects.url,
        why=_message(errors[0]) if errors else "",
    )


def _put_all(
    store: "Store", run: str, objects: ObjectStore, files: Mapping[tuple[AttemptKey, str], Path], home: Path
) -> dict[tuple[AttemptKey, str], Exception]:
    """Write files to the object store; return the errors of those that are not there now."""
    stored: dict[AttemptKey, dict[str, int]] = {}

    def put(item: tuple[AttemptKey, str]) -> None:
        key, name = item
        packed, count = _put(objects, run, key, name, files[item], home)
        stored.setdefault(key, {})[packed] = count

    seconds = transfer_s(sum(path.stat().st_size for path in files.values()))
    errors = for_each(
        files, put, seconds=seconds, what=f"cannot write all files to the object store {objects.url}"
    )
    if stored:
        document = store.documents.get(run, StoredDocument) or StoredDocument()
        entries = {key: {**document.root.get(key, {}), **names} for key, names in list(stored.items())}
        store.documents.merge(run, StoredDocument, entries)
    return errors


def _put(objects: ObjectStore, run: str, key: AttemptKey, name: str, path: Path, home: Path) -> tuple[str, int]:
    """Write a file, a large log compressed; return (path of its object in the attempt's folder, its bytes)."""
    if path.name.endswith(ZIPPED) and not name.endswith(ZIPPED):
        name += ZIPPED
    elif is_log(name) and path.stat().st_size >= LEAST:
        name += ZIPPED
        packed = home / FOLDER / "out" / f".{uuid.uuid4().hex}"
        packed.parent.mkdir(parents=True, exist_ok=True)
        try:
            compress_to(path, packed)
            return name, objects.put(object_name(run, key, name), packed)
        finally:
            packed.unlink(missing_ok=True)
    return name, objects.put(object_name(run, key, name), path)


def _sorted(files: Iterable[KeptFile]) -> tuple[str, ...]:
    return tuple(sorted(file.path for file in files))


def _message(error: Exception) -> str:
    return error.message if isinstance(error, InfraError) else f"{type(error).__name__}: {error}"
