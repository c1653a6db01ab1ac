"""The declared chains: `configs/chains/<suite>/<model>/<file>.txt`."""

import os
from pathlib import Path


def declared_chains(config_dir: Path) -> list[str]:
    """Return the names `<suite>/<model>/<file>` of all params files, sorted; none if the folder does not exist."""
    return sorted(
        f"{suite.name}/{model.name}/{file.name.removesuffix('.txt')}"
        for suite in _folders(config_dir / "chains")
        for model in _folders(Path(suite.path))
        for file in os.scandir(model.path)
        if file.name.endswith(".txt")
    )


def _folders(folder: Path) -> list["os.DirEntry[str]"]:
    return [entry for entry in os.scandir(folder) if entry.is_dir()] if folder.is_dir() else []
