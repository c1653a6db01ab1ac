"""Facts to verdicts: one small pure module per question, no I/O."""

from tipcflow.check.context import CheckContext, Pin
from tipcflow.check.judge import judge, verdict

__all__ = ["CheckContext", "Pin", "judge", "verdict"]
