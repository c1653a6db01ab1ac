"""Matched quirk: a quirk that a file triggers."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class QuirkMatch:
    """A quirk at a line (0 for the whole file), with the values of its texts."""

    id: str
    line: int = 0
    values: Mapping[str, object] = field(default_factory=dict)
