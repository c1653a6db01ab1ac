"""Named differences between a suite's script and its params file, found in one file."""

from functools import cache
from importlib import resources

import yaml

from tipcflow.domain import Quirk
from tipcflow.plan.call import Point
from tipcflow.plan.groups import Group
from tipcflow.plan.quirk_finders import find_all
from tipcflow.plan.quirk_found import Found
from tipcflow.plan.reader import Reader


def find_quirks(reader: Reader, groups: list[Group], points: list[Point]) -> tuple[Quirk, ...]:
    """The quirks that change what this file runs in this mode, in the order of their lines."""
    found = {(each.id, each.line): each for each in find_all(reader, groups, points)}
    return tuple(sorted(map(_quirk, found.values()), key=lambda quirk: (quirk.line, quirk.id)))


def _quirk(found: Found) -> Quirk:
    texts = catalogue()[found.id]
    return Quirk(
        id=found.id,
        line=found.line,
        bash=texts["bash"].format(**found.values),
        spec=texts["spec"].format(**found.values),
    )


@cache
def catalogue() -> dict[str, dict[str, str]]:
    """Quirk id -> its texts for bash and spec, with places to fill in."""
    text = (resources.files("tipcflow.plan") / "quirks.yaml").read_text(encoding="utf-8")
    loaded: dict[str, dict[str, str]] = yaml.safe_load(text)
    return loaded


def quirks_markdown() -> str:
    """The page that lists every quirk, for the reference documentation."""
    rows = [f"| `{name}` | {texts['bash']} | {texts['spec']} |" for name, texts in catalogue().items()]
    return "\n".join(
        [
            "# Quirks",
            "",
            "What a suite's script does (`--compat bash`), and what a run does instead (`--compat spec`).",
            "Words in braces are filled in from the file; `tipcflow plan --diff` shows those that a file meets.",
            "",
            "| id | bash | spec |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )
