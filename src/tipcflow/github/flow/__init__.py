"""From stored deliveries to attempts, from runs to reports, and from alerts to issues; all state is stored.

Every step may be repeated: a process that dies in between loses and doubles nothing.

Public: `__all__`, `deliver`, `handle`, `observe`, `waiting`.
"""

from tipcflow.github.flow.comparisons import (
    AbRun,
    ComparisonBody,
    add_comparison,
    living_comparisons,
    save_comparison,
)
from tipcflow.github.flow.deliver import Delivered, deliver
from tipcflow.github.flow.handle import Clients, handle
from tipcflow.github.flow.issues import write_issues
from tipcflow.github.flow.observe import report
from tipcflow.github.flow.waiting import work_waits

__all__ = [
    "AbRun",
    "Clients",
    "ComparisonBody",
    "Delivered",
    "add_comparison",
    "deliver",
    "handle",
    "living_comparisons",
    "report",
    "save_comparison",
    "work_waits",
    "write_issues",
]
