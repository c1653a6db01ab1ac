"""Documents about the files that were fetched from a run's nodes."""

from typing import ClassVar

from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.masking import Masked
from tipcflow.domain.run_documents import Fields, Root


class KeptDocument(Root[dict[AttemptKey, dict[str, str]]]):
    """Attempt -> path in the attempt's folder -> SHA-256 of the files that were fetched from the nodes."""

    NAME: ClassVar[str] = "kept"
    root: dict[AttemptKey, dict[str, str]] = {}


class StoredDocument(Root[dict[AttemptKey, dict[str, int]]]):
    """Attempt -> path in the attempt's folder -> bytes of the files that are in the object store.

    The path of a file that was compressed for the store ends in `.gz`.
    """

    NAME: ClassVar[str] = "stored"
    root: dict[AttemptKey, dict[str, int]] = {}


class LostFilesDocument(Fields):
    """Fetched files that are not available as they were fetched, where the run is judged.

    Attributes:
        missing, changed, unstored: paths in the run's folder; those of `unstored` are only on that machine.
        kept: number of fetched files.
        url: the object store, '' without one.
        why: the first error of the object store, '' without one.
    """

    NAME: ClassVar[str] = "lost_files"
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unstored: tuple[str, ...] = ()
    kept: int = 0
    url: str = ""
    why: Masked = ""


class SignedDocument(Fields):
    """The run has had a signed certificate, or one that the configured key could not sign: no later certificate of
    the run is complete without a signature.

    The signature itself is removed when an unsigned certificate replaces the signed one.
    """

    NAME: ClassVar[str] = "signed"


class StoringDocument(Fields):
    """The object store may lack the run's certificate or signature, or have those of two certificates.

    A process is writing them, or ended or failed before both were written.

    Attributes:
        since: time at which a process last began to write them, seconds since the epoch.
    """

    NAME: ClassVar[str] = "storing"
    since: float
