"""The names of chains: the declared ones, `configs/chains/<suite>/<model>/<file>.txt`, and those of stored runs.

Earlier versions stored the path of a suite file in the name of some runs.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.domain.run.names import ChainName

if TYPE_CHECKING:
    from tipcflow.store.queries.states import Line


def declared_chains(config_dir: Path) -> list[str]:
    """Return the names `<suite>/<model>/<file>` of all params files, sorted; none if the folder does not exist."""
    return sorted(
        f"{suite.name}/{model.name}/{file.name.removesuffix('.txt')}"
        for suite in _folders(config_dir / "chains")
        for model in _folders(Path(suite.path))
        for file in os.scandir(model.path)
        if file.name.endswith(".txt")
    )


def split_by_name(lines: Iterable["Line"]) -> tuple[list["Line"], tuple[str, ...]]:
    """Return the lines of chains, and a sentence for each stored name that is not the name of a chain."""
    named: list[Line] = []
    unnamed: dict[str, Line] = {}
    for line in lines:
        if ChainName.parse_or_none(line.chain):
            named.append(line)
        elif line.chain not in unnamed or unnamed[line.chain].created_at < line.created_at:
            unnamed[line.chain] = line
    return named, tuple(_sentence(line) for _, line in sorted(unnamed.items()))


def _folders(folder: Path) -> list["os.DirEntry[str]"]:
    return [entry for entry in os.scandir(folder) if entry.is_dir()] if folder.is_dir() else []


def _sentence(line: "Line") -> str:
    return (
        f"not counted: {line.chain!r} is not the name of a chain, '<suite>/<model>/<file>' "
        f"(newest run: {line.run}, {line.status.value})"
    )
