"""The file system that a suite's script looks at, as an argument of the planner."""

from fnmatch import fnmatchcase
from typing import Protocol, runtime_checkable


@runtime_checkable
class FileView(Protocol):
    """What is in the suite's checkout, by paths relative to its root."""

    def exists(self, path: str) -> bool:
        """Whether the file or folder is there."""
        ...

    def glob(self, pattern: str) -> list[str]:
        """The paths that match a shell pattern, sorted; empty when none does."""
        ...


class NoFiles:
    """A checkout of which nothing is known: nothing exists, no pattern matches."""

    def exists(self, path: str) -> bool:
        """Never."""
        return False

    def glob(self, pattern: str) -> list[str]:
        """Nothing."""
        return []


class ListedFiles:
    """A checkout given as a list of its paths."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = sorted({_plain(path) for path in paths})

    def exists(self, path: str) -> bool:
        """Whether the path, or a path below it, is listed."""
        plain = _plain(path)
        return any(known == plain or known.startswith(plain + "/") for known in self._paths)

    def glob(self, pattern: str) -> list[str]:
        """Listed paths of the same depth that match part by part."""
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
