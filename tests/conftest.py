"""What all tests share: the records of the suites' scripts, and the mark of tests that need root."""

import os

import pytest
from tests.support.oracle import Oracle, find_oracle
from tests.support.programs import missing


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that need root, or fail them in CI."""
    if item.get_closest_marker("root") and os.geteuid() != 0:
        missing("the test needs root")


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """Records of the suites' own scripts."""
    return find_oracle()
