"""Faults of runs from the CLI (tests/support/faults/table.py)."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.faults.case import Case
from tests.support.faults.fault import Fault
from tests.support.faults.report import judged, param
from tests.support.faults.table import FAULTS
from tests.support.programs import missing

from devcluster.local_nodes.nodes import LocalNodes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


@pytest.fixture
def case(nodes: LocalNodes, tmp_path: Path) -> Iterator[Case]:
    if nodes.kind != "namespaces":
        missing("the faults need network namespaces, that is, root")
    with ExitStack() as stack:
        made = Case(tmp_path, nodes, stack)
        stack.callback(made.reset)
        yield made


@pytest.mark.parametrize("fault", [param(fault, "cli") for fault in FAULTS if "cli" in fault.doors])
def test_cli_run_reports_the_fault(case: Case, fault: Fault) -> None:
    judged(case, fault)
