"""Quirk catalogue: named differences between a suite's script and its params file."""

from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Literal

from tipcflow.config.yaml_text.shipped import own_yaml
from tipcflow.domain import Frozen, Quirk
from tipcflow.plan.quirks.match import QuirkMatch


def as_quirks(matches: Iterable[QuirkMatch]) -> tuple[Quirk, ...]:
    """Return quirks with their texts, one per id and line, sorted by line."""
    once = {(match.id, match.line): match for match in matches}
    return tuple(sorted(map(_quirk, once.values()), key=lambda quirk: (quirk.line, quirk.id)))


def _quirk(match: QuirkMatch) -> Quirk:
    entry = catalogue()[match.id]
    return Quirk(
        id=match.id,
        line=match.line,
        bash=entry.bash.format(**match.values),
        spec=entry.spec.format(**match.values),
        words=tuple(word.format(**match.values).strip() for word in entry.words),
    )


class Entry(Frozen):
    """A quirk of the catalogue.

    Attributes:
        bash, spec: what the script does and what a tipcflow run does, with placeholders.
        steps: kinds of steps whose commands show it.
        by: which differing words identify it, see quirks.yaml.
        words: keys and values of the file that differ, with placeholders.
    """

    bash: str
    spec: str
    steps: tuple[str, ...] = ()
    by: tuple[Literal["key", "launch", "gpu"], ...] = ()
    words: tuple[str, ...] = ()


@cache
def catalogue() -> dict[str, Entry]:
    """Return quirk id -> entry, in the order of quirks.yaml."""
    text = (resources.files("tipcflow.plan") / "quirks.yaml").read_text(encoding="utf-8")
    return {name: Entry.model_validate(entry) for name, entry in own_yaml(text).items()}


def quirks_markdown() -> str:
    """Return the reference page of all quirks."""
    rows = [f"| `{name}` | {entry.bash} | {entry.spec} |" for name, entry in catalogue().items()]
    return "\n".join(
        [
            "# Quirks",
            "",
            "A quirk is a named difference between what a suite's script does (`--compat bash`) and what tipcflow",
            "does (`--compat spec`). Words in braces are filled in from the file. `tipcflow plan --diff` lists",
            "the quirks of a file.",
            "",
            "| id | bash | spec |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )
