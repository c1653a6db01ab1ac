"""Records of the suites' own scripts: 100 in the repository, all in the folder that TIPC_ORACLE names."""

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHIPPED = Path(__file__).parents[2] / "golden" / "oracle"


@dataclass(frozen=True)
class Oracle:
    """A folder of records.

    Attributes:
        is_whole: the folder has all records, not the 100 of the repository.
    """

    folder: Path
    is_whole: bool

    def files(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """Name and records of each file."""
        paths = sorted([*self.folder.glob("*.jsonl"), *self.folder.glob("*.jsonl.gz")])
        assert paths, f"{self.folder} has no records (*.jsonl, *.jsonl.gz)"
        for path in paths:
            data = path.read_bytes()
            text = gzip.decompress(data) if path.suffix == ".gz" else data
            yield path.name, [json.loads(line) for line in text.splitlines()]

    def records(self) -> Iterator[dict[str, Any]]:
        """All records."""
        for _, records in self.files():
            yield from records


def find_oracle() -> Oracle:
    """All records if TIPC_ORACLE names a folder, else those of the repository."""
    folder = os.environ.get("TIPC_ORACLE")
    return Oracle(Path(folder), is_whole=True) if folder else Oracle(SHIPPED, is_whole=False)


def kind_of(record: dict[str, Any]) -> tuple[str, str, str, str]:
    """Dialect, family of scripts, mode and variant; '' where the record has none."""
    return tuple(record.get(name) or "" for name in ("dialect_name", "family", "mode", "variant"))  # type: ignore[return-value]
