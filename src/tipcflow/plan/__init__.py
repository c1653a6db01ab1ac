"""Planner: params, mode and cluster -> Plan, by the suite's script or by the file (see docs/architecture.md).

Public: `__all__`.
"""

from tipcflow.params.modes import ALL_MODES, MODES
from tipcflow.plan.bash.batch import plan_record, record_commands
from tipcflow.plan.bash.benchmark import benchmark_commands
from tipcflow.plan.bash.commands import plan_commands
from tipcflow.plan.build import build_plan
from tipcflow.plan.quirks.catalogue import quirks_markdown
from tipcflow.plan.source.choose import file_modes
from tipcflow.plan.source.files import FileView, ListedFiles, NoFiles
from tipcflow.plan.source.options import PlanOptions
from tipcflow.plan.view.diff import Difference, differences
from tipcflow.plan.view.table import PlanRow, plan_rows

__all__ = [
    "ALL_MODES",
    "MODES",
    "Difference",
    "FileView",
    "ListedFiles",
    "NoFiles",
    "PlanOptions",
    "PlanRow",
    "benchmark_commands",
    "build_plan",
    "differences",
    "file_modes",
    "plan_commands",
    "plan_record",
    "plan_rows",
    "quirks_markdown",
    "record_commands",
]
