"""Checks: evaluate a run's facts and give the verdict. One pure module per question, no I/O."""

from tipcflow.check.context import CheckContext, Confirmation, Pin
from tipcflow.check.judge import judge, verdict, why

__all__ = ["CheckContext", "Confirmation", "Pin", "judge", "verdict", "why"]
