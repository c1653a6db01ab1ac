"""Change-point detection in series of measurements, without I/O.

Public: `__all__`, `series`.
"""

from tipcflow.check.detect.gate import Gate
from tipcflow.check.detect.judge import judge_series
from tipcflow.check.detect.read import read_series
from tipcflow.check.detect.series import Alert, Observed, Point, Series

__all__ = ["Alert", "Gate", "Observed", "Point", "Series", "judge_series", "read_series"]
