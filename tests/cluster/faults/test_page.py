"""The page of faults and the table in code say the same."""

import json

from tests.support.faults.fault import Seen
from tests.support.faults.report import PAGE, RESULTS, page
from tests.support.faults.table import FAULTS


def test_every_fault_has_a_name_of_its_own_and_ends_or_goes_on() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names)
    assert all((fault.status == "pass") is fault.goes_on for fault in FAULTS)
    assert sum(fault.everyday for fault in FAULTS) >= 8


def test_the_page_is_written_from_the_table_and_the_results() -> None:
    seen = {name: Seen(**told) for name, told in json.loads(RESULTS.read_text()).items()}
    assert page(FAULTS, seen) == PAGE.read_text(), (
        "TIPCFLOW_WRITE_DOCS=1 make test-full writes docs/faults.md again"
    )
