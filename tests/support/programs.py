"""Programs and other requirements of tests that some machines lack."""

import os
import shutil
from typing import NoReturn

import pytest


def is_ci() -> bool:
    """Whether requirements of tests must be present."""
    return os.environ.get("CI", "").lower() in ("true", "1")


def missing(message: str) -> NoReturn:
    """Skip the test, or fail it in CI, because this machine lacks what the test needs."""
    if is_ci():
        pytest.fail(f"{message} (skipped without CI=true)", pytrace=False)
    pytest.skip(message)


def need(program: str, package: str = "") -> str:
    """Path of a program in PATH or sbin.

    Args:
        package: the Debian package, if it has another name.
    """
    found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
    if found is None:
        missing(f"{program} is not installed (Debian: apt-get install {package or program})")
    return found
