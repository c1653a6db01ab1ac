"""Files of a suite's checkout, as an argument of the planner."""

from fnmatch import fnmatchcase
from typing import Protocol, runtime_checkable


@runtime_checkable
class FileView(Protocol):
    """Content of the suite's checkout, by paths relative to its root."""

    @property
    def trainings_leave_files(self) -> bool:
        """Whether the folder, log and weights of a planned training count as existing."""
        ...

    def exists(self, path: str) -> bool:
        """Whether the file or folder exists."""
        ...

    def glob(self, pattern: str) -> list[str]:
        """Return the paths that match a shell pattern, sorted; empty if none matches."""
        ...


class NoFiles:
    """An unknown checkout: no file exists, no pattern matches, trainings succeed."""

    trainings_leave_files = True

    def exists(self, path: str) -> bool:
        """Return False."""
        return False

    def glob(self, pattern: str) -> list[str]:
        """Return no path."""
        return []


class ListedFiles:
    """A checkout given as a list of its paths; their parent folders exist too."""

    def __init__(self, paths: list[str], *, trainings_leave_files: bool = True) -> None:
        plain = {_plain(path) for path in paths}
        folders = {path.rsplit("/", depth)[0] for path in plain for depth in range(1, path.count("/") + 1)}
        self._paths = sorted(plain | folders)
        self.trainings_leave_files = trainings_leave_files

    def exists(self, path: str) -> bool:
        """Whether the path is listed or is a parent of a listed path."""
        return _plain(path) in self._paths

    def glob(self, pattern: str) -> list[str]:
        """Return listed paths of the same depth that match part by part."""
        parts = _plain(pattern).split("/")
        return [path for path in self._paths if _matches(path.split("/"), parts)]


def _plain(path: str) -> str:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return "/".join(parts)


def _matches(parts: list[str], patterns: list[str]) -> bool:
    return len(parts) == len(patterns) and all(
        fnmatchcase(part, pattern) and (pattern.startswith(".") or not part.startswith("."))
        for part, pattern in zip(parts, patterns, strict=True)
    )
