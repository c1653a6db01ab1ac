"""Checks: evaluate a run's facts and give the verdict. One pure module per question, no I/O.

Public: `__all__`, `context`, `judge`, `quarantine`, `select`.
"""

from tipcflow.check.context import BaseRuns, CheckContext, Confirmation, Pin
from tipcflow.check.judge import judge, verdict, verdict_reasons

__all__ = ["BaseRuns", "CheckContext", "Confirmation", "Pin", "judge", "verdict", "verdict_reasons"]
