"""The versions of a search, as the task `check` returns them to the next task."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from tipcflow.bisect import Touches
from tipcflow.execute.bisection.builds import Build
from tipcflow.execute.bisection.commits import Commit


@dataclass(frozen=True)
class Versions:
    """The versions of a search, oldest first.

    Attributes:
        suite_commit: commit of the suite in a search over builds; '' for its working tree.
    """

    versions: Sequence[Commit | Build]
    suite_commit: str = ""

    def as_xcom(self) -> dict[str, Any]:
        """Return the versions as JSON."""
        return {
            f"{self.versions[0].NOUN}s": [list(map(str, astuple(version))) for version in self.versions],
            "suite_commit": self.suite_commit,
        }

    @classmethod
    def of(cls, xcom: Mapping[str, Any]) -> "Versions":
        """Return the versions of `as_xcom`."""
        commits = [Commit(commit, title, Touches(touched)) for commit, title, touched in xcom.get("commits", ())]
        return cls(commits or [Build(*fields) for fields in xcom["builds"]], xcom["suite_commit"])
