"""Prints the table of faults at the end."""

from typing import Any

from tests.support.faults.report import print_table


def pytest_terminal_summary(terminalreporter: Any) -> None:
    print_table(terminalreporter)
