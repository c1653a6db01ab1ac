"""Named differences between a suite's script and its params file, found in one file."""

from collections.abc import Iterable
from functools import cache
from importlib import resources

import yaml

from tipcflow.domain import Quirk
from tipcflow.plan.quirk_found import Found


def as_quirks(found: Iterable[Found]) -> tuple[Quirk, ...]:
    """Quirks with their texts, each once a line, in the order of their lines."""
    once = {(each.id, each.line): each for each in found}
    return tuple(sorted(map(_quirk, once.values()), key=lambda quirk: (quirk.line, quirk.id)))


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
