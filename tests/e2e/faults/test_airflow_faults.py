"""Faults of runs in Airflow (tests/support/faults/table.py)."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.faults.airflow_case import AirflowCase
from tests.support.faults.fault import Fault
from tests.support.faults.report import judged, param
from tests.support.faults.table import FAULTS
from tests.support.scheduler import Scheduler

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture
def case(scheduler: Scheduler, tmp_path: Path) -> Iterator[AirflowCase]:
    with ExitStack() as stack:
        made = AirflowCase(tmp_path, scheduler, stack)
        stack.callback(made.reset)
        yield made


@pytest.mark.parametrize("fault", [param(fault, "airflow") for fault in FAULTS if "airflow" in fault.doors])
def test_airflow_run_reports_the_fault(case: AirflowCase, fault: Fault) -> None:
    judged(case, fault)
