"""The files that a run's closers kept, by hash in the database: the verdict needs all of them on any machine.

Without the record, a certificate made on a machine that lacks a worker's files would only be shorter.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run.kept_files import KeptDocument
from tipcflow.execute.collect.folders import earlier_folder
from tipcflow.execute.collect.log_archive import content_hash, is_log, plain_name
from tipcflow.execute.events import EVENTS
from tipcflow.remote import paths

if TYPE_CHECKING:
    from tipcflow.store import Store

# Files of a run's folder that no node wrote.
CERTIFICATE = "certificate.json"
SIGNATURE = "certificate.dsse.json"
_OURS = frozenset({CERTIFICATE, SIGNATURE, EVENTS})


def hashes_in(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file collected from the nodes, by path in `folder`.

    A compressed log has the hash of its content under its original name.
    """
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    names = sorted(str(path.relative_to(folder)) for path in files)
    plain = [plain_name(name) if is_log(name) else name for name in names if name not in _OURS]
    return {name: content_hash(folder / name) for name in plain}


def record_kept(
    store: "Store", run: str, step: str, attempt: int, folder: Path, *, late: bool = False
) -> dict[str, str]:
    """Store the hashes of an attempt's files before the attempt is closed; return them.

    Args:
        folder: the attempt's folder on this machine.
        late: the attempt is closed, and more of its files were fetched: those that are recorded stay as they were,
            whether or not this machine has them.
    """
    hashes = hashes_in(folder)
    key = AttemptKey(step, attempt)
    if late:
        hashes |= kept_by_attempt(store, run).get(key, {})
    store.documents.merge(run, KeptDocument, {key: hashes})
    return hashes


def kept_by_attempt(store: "Store", run: str) -> dict[AttemptKey, dict[str, str]]:
    """Return attempt -> path in the attempt's folder -> SHA-256."""
    document = store.documents.get(run, KeptDocument)
    return dict(document.root) if document else {}


def kept_files(store: "Store", run: str) -> dict[str, str]:
    """Return path in the run's folder -> SHA-256 of every file that was kept.

    The last attempt of a step has its files in `<step>`, an earlier one in `<step>~<attempt>`.
    """
    folders = folders_of(store, run)
    return {
        f"{folders[key]}/{name}": sha256
        for key, files in kept_by_attempt(store, run).items()
        for name, sha256 in files.items()
    }


def folders_of(store: "Store", run: str) -> dict[AttemptKey, str]:
    """Return attempt -> name of its folder in the run's folder."""
    last: dict[str, int] = {}
    for entry in store.attempts.of(run):
        last[entry.step] = max(entry.attempt, last.get(entry.step, 0))
    folders = {}
    for key in kept_by_attempt(store, run):
        folder = Path(paths.safe_name(key.step))
        is_last = key.attempt >= last.get(key.step, 0)
        folders[key] = (folder if is_last else earlier_folder(folder, key.attempt)).name
    return folders
