"""Documents about the files that were fetched from a run's nodes."""

from typing import ClassVar

from tipcflow.domain.run_documents import Fields, Root


class KeptDocument(Root[dict[str, dict[str, str]]]):
    """Attempt -> path in the attempt's folder -> SHA-256 of the files that were fetched from the nodes."""

    NAME: ClassVar[str] = "kept"
    root: dict[str, dict[str, str]] = {}

    @classmethod
    def key(cls, step: str, attempt: int) -> str:
        """Return the key of an attempt's files."""
        return f"{step}~{attempt}"

    @classmethod
    def parts(cls, key: str) -> tuple[str, int]:
        """Return (step, attempt) of a key."""
        step, _, number = key.rpartition("~")
        return step, int(number)


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
