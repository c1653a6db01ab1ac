"""Programs that a test needs and that not every machine has."""

import os
import shutil

import pytest


def need(program: str) -> str:
    """The program's path; skips without it, and fails where CI should have it."""
    found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{program} is not installed")
        pytest.skip(f"{program} is not installed")
    return found
