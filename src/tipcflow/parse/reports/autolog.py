"""Parser of AutoLog reports: sections of `key: value` lines.

    [2022/03/22 06:15:51] root INFO: ---------------------- Env info ----------------------
    [2022/03/22 06:15:51] root INFO:  OS_version: Ubuntu 16.04
    [2022/03/22 06:15:51] root INFO:  cpu_rss(MB): 227.2812, gpu_rss(MB): None, gpu_util: None%
    [2022/03/22 06:15:51] root INFO:  total time spent(s): 0.1583
    [2022/03/22 06:15:51] root INFO:  preprocess_time(ms): 18.6493, inference_time(ms): 139.591, post…

If the logger named `root` is the real root logger, each line is also printed in Paddle's own format
(`[2026-11-21 07:24:02,047] [    INFO] autolog.py:263 - …`): only the forms shown here are read. C++ programs
print `Config info`, the data before the model, either through glog or, with Paddle Lite, without any prefix:

    I0322 06:15:51.123456  1234 autolog.h:60] ----------------------- Config info -----------------------
    runtime_device: cpu

A value that spans two lines (`CUDA_version` of a full toolkit) continues on a line without a time stamp. A
log may contain several reports: a new report starts with a section that the previous report already has.
Times are means per call after warm-up; `data_num` includes the warm-up.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from tipcflow.domain import Frozen, Phase
from tipcflow.parse.metrics import unit_of
from tipcflow.parse.sample import Sample
from tipcflow.parse.text import lines_of, strip_ansi

_LOGGED, _GLOG, _BARE = "logged", "glog", "bare"
# Digits are interchangeable: neither pattern depends on the number of digits.
_PREFIXES = {
    _LOGGED: re.compile(r"^\[\d+/\d+/\d+ \d+:\d+:\d+\] \S+ INFO: ?(.*)$"),
    _GLOG: re.compile(r"^I\d+ \d+:\d+:\d+\.\d+\s{1,6}\d+ [\w./-]+:\d+\] ?(.*)$"),
}
_DATE = re.compile(r"^\[(\d{4}/\d\d?/\d\d? \d\d?:\d\d?:\d\d?)\]")
# An identifier `[det]` may precede each title and pair.
_WHOSE = r"^\s*(?:\[[^\]]*\]\s*)?"
_TITLE = re.compile(rf"{_WHOSE}-{{5,}} (Env|Paddle|Conf(?:ig)?|Model|Data|Perf) info -{{5,}}\s*$")
_NAME = re.compile(r"[A-Za-z_][\w() ]*")
# A line without a prefix may be from any program, so only known fields of AutoLog are read.
_OWN_FIELD = re.compile(
    rf"{_WHOSE}(?:OS_version|CUDA_version|CUDNN_version|drivi?er_version|paddle_version|paddle_commit|"
    r"log_api_version|runtime_device|ir_optim|enable_\w+|cpu_math_library_num_threads|model_name|precision|"
    r"batch_size|input_shape|data_num|[A-Za-z]\w*(?: \w+){0,3}\((?:ms|s|MB)\))\s*:"
)
_FOREIGN = re.compile(r"^\[\d{4}-\d\d-\d\d [\d:,]+\] \[\s*\w+\] ([\w.]+):\d+ - ")
_LAST = "inference_time(ms)"

# Field of the report -> metric.
_MEASURED = {
    "preprocess_time(ms)": "preprocess_time",
    "inference_time(ms)": "inference_time",
    "postprocess_time(ms)": "postprocess_time",
    "total time spent(s)": "total_time",
    "cpu_rss(MB)": "cpu_rss",
    "gpu_rss(MB)": "gpu_rss",
    "gpu_util": "gpu_util",
    "data_num": "data_num",
}
_WITH_UNIT = re.compile(r"^(\w[\w ]*)\((ms|s|MB)\)$")
_RENAMED = {"Total time spent": "total_time", "total time spent": "total_time"}


class AutologBlock(Frozen):
    """One report: its fields as printed, its byte offset, whether it is complete, and the time of its first
    line: seconds since the epoch with the time stamp read as UTC, -1 without a date."""

    fields: dict[str, str]
    offset: int = -1
    complete: bool = False
    at: float = -1.0

    @property
    def timed(self) -> bool:
        """Return whether the report contains a duration."""
        return any(sample.unit in ("s", "ms") for sample in self.samples)

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Return the values of the report; a field that is `None` or missing is skipped."""
        return tuple(self._samples())

    def _samples(self) -> Iterator[Sample]:
        for field, text in self.fields.items():
            name, unit = _measured(field)
            try:
                value = float(text.removesuffix("%"))
            except ValueError:
                continue
            if name:
                yield Sample(name, value, unit or unit_of(name), Phase.INFER, offset=self.offset)


def _measured(field: str) -> tuple[str, str]:
    """Return metric and unit of a field; ('', '') if the field is not a measurement."""
    if field in _MEASURED:
        return _MEASURED[field], ""
    # A program may add times of its own (`det_time(ms)`), and C++ prints its total in ms.
    own = _WITH_UNIT.match(field)
    return (_RENAMED.get(own[1], own[1]), own[2]) if own else ("", "")


class AutologReader:
    """Reads a log line by line; only the contents of reports are stored."""

    def __init__(self) -> None:
        self._fields: list[dict[str, str]] = []
        self._offsets: list[int] = []
        self._stamps: list[float] = []
        self._sections: set[str] = set()
        self._how = self._section = self._last = ""

    def line(self, offset: int, line: str) -> bool:
        """Process the next line, without colors; return whether it is part of a report."""
        how, body = _body(line)
        title = _TITLE.match(body)
        if title:
            self._begin(offset, how, title[1], line)
            return True
        if self._section and how == self._how and not (how == _BARE and not _OWN_FIELD.match(body)):
            self._last = self._take(body)
            return bool(self._last)
        goes_on = bool(self._last) and _continues(line)
        if goes_on:
            self._fields[-1][self._last] = f"{self._fields[-1][self._last]}\n{line.strip()}"
        # Any other line is from another source, and so is its continuation.
        self._last = ""
        return goes_on

    def _begin(self, offset: int, how: str, title: str, line: str) -> None:
        """Start a section, and a new report if the previous one already has this section or is complete."""
        section = title.removesuffix("ig")
        if not self._fields or how != self._how or section in self._sections or _LAST in self._fields[-1]:
            self._fields.append({})
            self._offsets.append(offset)
            self._stamps.append(_stamp(line))
            self._sections = set()
        self._sections.add(section)
        self._how, self._section, self._last = how, section, ""

    def _take(self, body: str) -> str:
        """Add a line's fields to the report; return the name of the last one ('' if there is none)."""
        block = self._fields[-1]
        whole = _LAST in block
        name = ""
        for part in body.split(", ") if self._section == "Perf" else [body]:
            field = _field(part)
            # After the times of a report, only further times belong to the report.
            if field and (not whole or _measured(field[0])[0]):
                name = field[0]
                block.setdefault(*field)
        return name

    @property
    def blocks(self) -> tuple[AutologBlock, ...]:
        """Return all reports so far, in the order of the log; a truncated report has `complete` False."""
        return tuple(
            AutologBlock(fields=dict(fields), offset=offset, complete=_LAST in fields, at=at)
            for fields, offset, at in zip(self._fields, self._offsets, self._stamps, strict=True)
        )


def _stamp(line: str) -> float:
    """Return the time of a line, with its date and time read as UTC; -1 for lines without a date."""
    match = _DATE.match(line)
    try:
        return datetime.strptime(match[1], "%Y/%m/%d %H:%M:%S").replace(tzinfo=UTC).timestamp() if match else -1.0
    except ValueError:
        return -1.0


def may_be_autolog(line: str) -> bool:
    """Return whether a line may be part of a report, depending on the lines before it. Digits are
    interchangeable."""
    how, body = _body(line)
    if _TITLE.match(body):
        return True
    if how == _BARE:
        return _continues(line) or _OWN_FIELD.match(body) is not None
    return _field(body) is not None


def _field(part: str) -> tuple[str, str] | None:
    """Return name and value of `name: value`, None for anything else; linear time for any input."""
    text = part.lstrip()
    if text.startswith("["):
        text = text.partition("]")[2].lstrip()
    name, colon, value = text.partition(":")
    name = name.rstrip()
    return (name, value.strip()) if colon and _NAME.fullmatch(name) else None


def _body(line: str) -> tuple[str, str]:
    """Return (prefix form, rest of the line)."""
    for how, prefix in _PREFIXES.items():
        match = prefix.match(line)
        if match:
            return how, match[1]
    return _BARE, line


def parse_autolog(text: str | bytes) -> tuple[AutologBlock, ...]:
    """Return all reports of a log, in order; a truncated report has `complete` False."""
    reader = AutologReader()
    for offset, raw in lines_of(text):
        reader.line(offset, strip_ansi(raw))
    return reader.blocks


def _continues(line: str) -> bool:
    """Return whether a line without a time stamp continues the previous value: only the build line of nvcc
    does."""
    return line.startswith("Build ")


def real_autolog_spoke(text: str) -> bool:
    """Return whether the `auto_log` package itself printed the report: the second copy of its lines names its
    source file."""
    return any(match[1] == "autolog.py" for match in map(_FOREIGN.match, strip_ansi(text).splitlines()) if match)
