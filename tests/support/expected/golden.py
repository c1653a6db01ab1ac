"""Comparison of a text with its golden file."""

import os
from pathlib import Path


def assert_golden(file: Path, text: str) -> None:
    """Compare a text with a golden file; UPDATE_GOLDEN=1 writes the file first, for its diff to be read."""
    if os.environ.get("UPDATE_GOLDEN") and not os.environ.get("CI"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert text == file.read_text()
