"""Definition of a lie: a suite that claims work it did not do, and the verdict that it must get."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.certify import Site

from tipcflow.domain import Status

FAILED = frozenset({Status.FAILED})
WORSE = frozenset({Status.FAILED, Status.REGRESSION})
DOUBT = frozenset({Status.FAILED, Status.REGRESSION, Status.UNCONFIRMED})


@dataclass(frozen=True)
class Lie:
    """One row of docs/liars.md, and one test.

    Attributes:
        name: a few words; the test's id.
        does: what the suite does, for a reader.
        apply: edits the suite (and, where the lie needs it, the policy) of a user.
        named: regular expressions; each must match the run's reason, letter case ignored.
        statuses: the statuses that are right for the run.
        history: whether accepted honest runs exist before the lie.
        options: options of `tipcflow run`.
        everyday: whether CI runs it; else only `make test-full`.
    """

    name: str
    does: str
    apply: Callable[[Site], None]
    named: tuple[str, ...]
    statuses: frozenset[Status] = FAILED
    history: bool = True
    options: dict[str, str] = field(default_factory=dict)
    everyday: bool = True


def rewrite(path: Path, old: str, new: str, *, every: bool = False) -> None:
    """Replace text that must be in the file: a lie that does not reach the suite proves nothing."""
    text = path.read_text()
    assert old in text, f"{path.name} does not hold {old!r}"
    path.write_text(text.replace(old, new) if every else text.replace(old, new, 1))


def edit(file: str, *changes: tuple[str, str]) -> Callable[[Site], None]:
    """A lie that is a few replacements in one file of the suite."""

    def apply(site: Site) -> None:
        for old, new in changes:
            rewrite(site.suite / file, old, new)

    return apply


def both(*tellers: Callable[[Site], None]) -> Callable[[Site], None]:
    """Several edits that make one lie."""

    def apply(site: Site) -> None:
        for one in tellers:
            one(site)

    return apply
