"""A quirk that a file runs into."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Found:
    """A quirk at a line (0 for the whole file), with what its texts need."""

    id: str
    line: int = 0
    values: Mapping[str, object] = field(default_factory=dict)
