"""Collects what a log reports other than metric lines: AutoLog reports, launcher messages, TIPC results, ranks,
engines, and benchmark objects that span several lines."""

import re

from tipcflow.domain import RankReport
from tipcflow.parse.failures.launch import LaunchFailure, parse_launch
from tipcflow.parse.reports.autolog import AutologBlock, AutologReader, may_be_autolog
from tipcflow.parse.reports.engine import parse_engine
from tipcflow.parse.reports.objects import ObjectReader, may_be_object
from tipcflow.parse.reports.rank import parse_ranks
from tipcflow.parse.reports.results import ResultLine, parse_result
from tipcflow.parse.rules.reading import samples_of
from tipcflow.parse.sample import Sample
from tipcflow.parse.suites.dlperf import SpeedRule

AUXILIARY_KINDS = ("autolog", "launch", "results", "rank", "engine", "benchmark")

# The launcher of Paddle 2.3 and later, and the older one, which prints its settings in a box.
_LAUNCH = re.compile(
    r"LAUNCH (?:INFO|WARNING|ERROR) |Container rank \d+ status "
    r"|(?:INFO|WARNING) [\d-]+ [\d:,]+ launch(?:_utils)?\.py:|launch train in \w+ mode"
    r"|\s{2,8}(?:\+[=-]{10,}\+|\|\s{2,}\S.*\|)\s*$"
)
# Limit of stored results and launcher messages, more than any real log contains: invalid data is not stored.
_MOST = 10_000


class AuxiliaryLine:
    """Collects the `wanted` kinds from single lines.

    Attributes:
        benchmark: values of benchmark objects, which span `benchmark_lines` lines.
    """

    def __init__(self, wanted: tuple[str, ...] = AUXILIARY_KINDS) -> None:
        self._wanted = frozenset(wanted)
        self._autolog = AutologReader()
        self._launch: list[str] = []
        self._ranks: dict[RankReport, None] = {}
        self.results: list[ResultLine] = []
        self.engine: dict[str, str] = {}
        self._objects = ObjectReader()
        self.benchmark: list[Sample] = []
        self.benchmark_lines = 0

    def may_want(self, line: str) -> bool:
        """Return whether `line` must be called for this line. Digits are interchangeable."""
        return (
            ("autolog" in self._wanted and may_be_autolog(line))
            or ("launch" in self._wanted and _LAUNCH.match(line) is not None)
            or ("results" in self._wanted and parse_result(line) is not None)
            or ("rank" in self._wanted and bool(parse_ranks(line)))
            or ("engine" in self._wanted and bool(parse_engine(line)))
            or ("benchmark" in self._wanted and may_be_object(line))
        )

    def line(self, offset: int, line: str) -> str:
        """Process a line for which `may_want` returns True; return its kind, '' if it has none (or none yet)."""
        if "benchmark" in self._wanted and may_be_object(line):
            self._object(offset, line)
            return ""
        if "autolog" in self._wanted and self._autolog.line(offset, line):
            return "autolog"
        if "launch" in self._wanted and _LAUNCH.match(line):
            self._launch += [line] if len(self._launch) < _MOST else []
            return "launch"
        result = parse_result(line) if "results" in self._wanted else None
        if result:
            self.results += [result] if len(self.results) < _MOST else []
            return "results"
        ranks = parse_ranks(line) if "rank" in self._wanted else ()
        if ranks:
            self._ranks |= dict.fromkeys(ranks)
            return "rank"
        engine = parse_engine(line) if "engine" in self._wanted else {}
        self.engine = engine or self.engine
        return "engine" if engine else ""

    def _object(self, offset: int, line: str) -> None:
        whole = self._objects.line(offset, line)
        readings = SpeedRule().read(whole) if whole and len(self.benchmark) < _MOST else []
        for reading in readings:
            self.benchmark += samples_of(reading, whole, offset=self._objects.offset)
            self.benchmark_lines += self._objects.lines

    @property
    def autolog(self) -> tuple[AutologBlock, ...]:
        """Return all AutoLog reports."""
        return self._autolog.blocks

    @property
    def launch(self) -> LaunchFailure | None:
        """Return the worker that the launcher reports as failed; None if no worker failed."""
        return parse_launch("\n".join(self._launch))

    @property
    def ranks(self) -> tuple[RankReport, ...]:
        """Return the ranks that processes reported."""
        return tuple(self._ranks)
