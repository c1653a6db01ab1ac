"""Documents about the files that were fetched from a run's nodes."""

from typing import ClassVar

from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run_documents import Fields, Root


class KeptDocument(Root[dict[AttemptKey, dict[str, str]]]):
    """Attempt -> path in the attempt's folder -> SHA-256 of the files that were fetched from the nodes."""

    NAME: ClassVar[str] = "kept"
    root: dict[AttemptKey, dict[str, str]] = {}


class LostFilesDocument(Fields):
    """Fetched files that the judge's machine did not have as they were fetched.

    Attributes:
        missing, changed: paths in the run's folder.
        kept: number of fetched files.
    """

    NAME: ClassVar[str] = "lost_files"
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    kept: int = 0
