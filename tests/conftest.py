"""What all tests share: records of the suites' scripts, the mark of tests that need root, and skips in CI."""

import gc
import os
from collections.abc import Generator

import pytest
from tests.support.expected.oracle import Oracle, find_oracle
from tests.support.programs import missing
from tests.support.skips import refuse_skip


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without garbage collection, and exclude the collected tests and imported modules from later ones:
    each full collection would visit millions of objects that live as long as the process."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that need root, or fail them in CI."""
    if item.get_closest_marker("root") and os.geteuid() != 0:
        missing("the test needs root")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail skips that CI does not accept."""
    report = yield
    refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for skipped files."""
    report = yield
    refuse_skip(report)
    return report


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """Records of the suites' own scripts."""
    return find_oracle()
