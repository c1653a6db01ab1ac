"""Params + mode + cluster -> Plan, by the suite's script or by what the file says (see docs/architecture.md)."""

from tipcflow.params.modes import ALL_MODES, MODES
from tipcflow.plan.batch import answer, record_commands
from tipcflow.plan.benchmark import benchmark_commands
from tipcflow.plan.build import build_plan
from tipcflow.plan.choose import file_modes
from tipcflow.plan.commands import plan_commands
from tipcflow.plan.diff import Difference, differences
from tipcflow.plan.files import FileView, ListedFiles, NoFiles
from tipcflow.plan.options import PlanOptions
from tipcflow.plan.quirks import quirks_markdown
from tipcflow.plan.table import PlanRow, plan_rows

__all__ = [
    "ALL_MODES",
    "MODES",
    "Difference",
    "FileView",
    "ListedFiles",
    "NoFiles",
    "PlanOptions",
    "PlanRow",
    "answer",
    "benchmark_commands",
    "build_plan",
    "differences",
    "file_modes",
    "plan_commands",
    "plan_rows",
    "quirks_markdown",
    "record_commands",
]
