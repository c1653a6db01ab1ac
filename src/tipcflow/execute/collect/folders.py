"""Folders of a step's files here: `<step>` for its last attempt, `<step>~<attempt>` for earlier ones."""

import glob
from collections.abc import Iterator
from pathlib import Path

from tipcflow.remote import paths


def step_folder(home: Path, run: str, step: str) -> Path:
    """Return the folder of a step's files, those of its last attempt."""
    return home / "runs" / run / paths.safe_name(step)


def earlier_folder(folder: Path, attempt: int | str) -> Path:
    """Return the folder that files of an earlier attempt are moved to.

    Args:
        folder: the step's folder.
    """
    return folder.with_name(f"{folder.name}~{attempt}")


def earlier_folders(folder: Path) -> Iterator[Path]:
    """Iterate over the existing folders of a step's earlier attempts."""
    return folder.parent.glob(f"{glob.escape(folder.name)}~*")
