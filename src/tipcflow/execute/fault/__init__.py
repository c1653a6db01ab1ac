"""The words for what went wrong: root cause first, then the evidence."""

from tipcflow.execute.fault.missing import who_was_missing
from tipcflow.execute.fault.sentence import ended, root_cause

__all__ = ["ended", "root_cause", "who_was_missing"]
