"""Prior probabilities of commits, by the files that they touch.

The rules are data: what a touched file says about a commit, and how much more or less probable the commit is.
"""

import posixpath
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase


class Touches(StrEnum):
    """What a commit touches: files of the chain, only documentation, or other files."""

    CHAIN = "chain"
    DOCUMENTATION = "documentation"
    OTHER = "other"


# Weight of a commit relative to one that touches other files.
WEIGHTS = {Touches.CHAIN: 20.0, Touches.DOCUMENTATION: 0.1, Touches.OTHER: 1.0}
# Share of the probability that the weights distribute; the rest is the same for each commit. So no prior makes a
# commit less than half as probable as without one, which costs at most one bit: about one run.
SHARE = 0.5
# Files without an effect on a run. Text files are not among them: `.txt` is the format of params files.
DOCUMENTATION = ("*.md", "*.rst", "docs/*", "*/docs/*", "doc/*", "*/doc/*", "*LICENSE", "*NOTICE", "*AUTHORS")
_PATH = re.compile(r"[\w.+@-]+(?:/[\w.+@-]+)+|[\w+@-]+\.\w+")
_SEPARATORS = re.compile(r"[-_. ]")
# A folder with a larger share of the suite's files is not part of one chain.
_LARGEST = 0.5


@dataclass(frozen=True)
class ChainFiles:
    """The files of a chain.

    Attributes:
        paths: files and folders that the params file names, and the params file itself.
        model: name of the model: files and folders of this name are the model's.
    """

    paths: frozenset[str]
    model: str

    @classmethod
    def of(cls, params_file: str, params_text: str, names: Collection[str]) -> "ChainFiles":
        """Return the files of the chain of a params file.

        Args:
            names: all files of the suite, relative to its root, as `params_file` is.
        """
        folders = _folders(names)
        largest = _LARGEST * len(names)
        paths = {params_file}
        for word in _PATH.findall(params_text):
            path = posixpath.normpath(word)
            is_folder = "/" in path and 0 < folders.get(path, 0) <= largest
            if path in names or is_folder:
                paths.add(path)
            elif len(below := [name for name in names if name.endswith(f"/{path}")]) == 1:
                paths |= set(below)  # relative to a folder that the script changes to
        return cls(frozenset(paths), posixpath.basename(posixpath.dirname(params_file)))

    def has(self, name: str) -> bool:
        """Whether a file is one of the chain's."""
        parts = name.split("/")
        above = {"/".join(parts[:end]) for end in range(1, len(parts) + 1)}
        stems = {_plain(part) for part in (*parts[:-1], posixpath.splitext(parts[-1])[0])}
        return bool(above & self.paths) or (bool(self.model) and _plain(self.model) in stems)


def touches(files: Iterable[str], chain: ChainFiles) -> Touches:
    """Return what a commit touches.

    Args:
        files: paths that it changes, relative to the suite's root.
    """
    names = list(files)
    if any(chain.has(name) for name in names):
        return Touches.CHAIN
    if names and all(any(fnmatchcase(name, glob) for glob in DOCUMENTATION) for name in names):
        return Touches.DOCUMENTATION
    return Touches.OTHER


def prior_probabilities(commits: Sequence[Touches]) -> tuple[float, ...]:
    """Return the prior probability of each commit; the sum is 1."""
    weights = [WEIGHTS[each] for each in commits]
    total = sum(weights)
    return tuple((1 - SHARE) / len(weights) + SHARE * weight / total for weight in weights)


def _folders(names: Iterable[str]) -> dict[str, int]:
    """Return folder -> number of files below it."""
    counts: dict[str, int] = {}
    for name in names:
        folder = posixpath.dirname(name)
        while folder:
            counts[folder] = counts.get(folder, 0) + 1
            folder = posixpath.dirname(folder)
    return counts


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name).lower()
