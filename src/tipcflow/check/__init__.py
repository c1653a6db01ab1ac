"""Facts to verdicts: one small pure module per question, no I/O."""

from tipcflow.check.context import CheckContext, Confirmation, Pin
from tipcflow.check.judge import judge, verdict, why

__all__ = ["CheckContext", "Confirmation", "Pin", "judge", "verdict", "why"]
