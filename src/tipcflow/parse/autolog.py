"""AutoLog's report: sections of `key: value` lines.

    [2022/03/22 06:15:51] root INFO: ---------------------- Env info ----------------------
    [2022/03/22 06:15:51] root INFO:  OS_version: Ubuntu 16.04
    [2022/03/22 06:15:51] root INFO:  cpu_rss(MB): 227.2812, gpu_rss(MB): None, gpu_util: None%
    [2022/03/22 06:15:51] root INFO:  total time spent(s): 0.1583
    [2022/03/22 06:15:51] root INFO:  preprocess_time(ms): 18.6493, inference_time(ms): 139.591, post…

Where the logger named `root` is the real root logger each line comes a second time in Paddle's own format
(`[2026-11-21 07:24:02,047] [    INFO] autolog.py:263 - …`): only lines of the form above are read. A value that
spans two lines (`CUDA_version` of a full toolkit) goes on with a line that has no stamp. One log may hold several
reports. Times are means per call after warm-up; `data_num` counts the warm-up too.
"""

import re
from collections.abc import Iterator

from tipcflow.domain import Frozen, Phase
from tipcflow.parse.metrics import unit_of
from tipcflow.parse.sample import Sample
from tipcflow.parse.text import lines_of, strip_ansi

_LINE = re.compile(r"^\[\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\] (\S+) INFO: ?(.*)$")
_STAMPED = re.compile(r"^\[[\d/]+ [\d:]+\] \S+ INFO: ?(.*)$")
_TITLE = re.compile(r"^-{5,} (Env|Paddle|Conf|Model|Data|Perf) info -{5,}\s*$")
# An identifier `[det]` may stand before each pair.
_FIELD = re.compile(r"^\s*(?:\[[^\]]*\]\s*)?([A-Za-z_][\w() ]*?)\s*:\s*(.*?)\s*$")
_FOREIGN = re.compile(r"^\[\d{4}-\d\d-\d\d [\d:,]+\] \[\s*\w+\] ([\w.]+):\d+ - ")
_ORDER = ("Env", "Paddle", "Conf", "Model", "Data", "Perf")

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
    """One report: its fields as printed, where it began (byte offset), and whether it came to its end."""

    fields: dict[str, str]
    offset: int = -1
    complete: bool = False

    @property
    def samples(self) -> tuple[Sample, ...]:
        """The numbers of the report; a field that is `None` or missing gives none."""
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
    """Metric and unit of a field; ('', '') of one that is no measurement."""
    if field in _MEASURED:
        return _MEASURED[field], ""
    # A program may add times of its own (`det_time(ms)`), and C++ prints its total in ms.
    own = _WITH_UNIT.match(field)
    return (_RENAMED.get(own[1], own[1]), own[2]) if own else ("", "")


class AutologReader:
    """Reads a log line by line; only what stands in reports is kept."""

    def __init__(self) -> None:
        self._fields: list[dict[str, str]] = []
        self._offsets: list[int] = []
        self._section = self._last = ""

    def line(self, offset: int, line: str) -> bool:
        """Take the next line, without colours; whether it is part of a report."""
        stamped = _LINE.match(line)
        if stamped is None:
            goes_on = bool(self._last) and _continues(line)
            if goes_on:
                self._fields[-1][self._last] = f"{self._fields[-1][self._last]}\n{line.strip()}"
            # Whatever else stands between belongs to somebody else, and so does what follows it.
            self._last = ""
            return goes_on
        title = _TITLE.match(stamped[2])
        if title:
            if not self._section or _ORDER.index(title[1]) <= _ORDER.index(self._section):
                self._fields.append({})
                self._offsets.append(offset)
            self._section, self._last = title[1], ""
        elif self._section:
            self._last = _take(self._fields[-1], self._section, stamped[2])
        return bool(title or self._last)

    @property
    def blocks(self) -> tuple[AutologBlock, ...]:
        """All reports so far, in the order of the log; one that was cut off has `complete` False."""
        return tuple(
            AutologBlock(fields=dict(fields), offset=offset, complete="inference_time(ms)" in fields)
            for fields, offset in zip(self._fields, self._offsets, strict=True)
        )


def may_be_autolog(line: str) -> bool:
    """Whether a line may be part of a report, depending on the lines before it. Digits are interchangeable."""
    stamped = _STAMPED.match(line)
    return bool(_TITLE.match(stamped[1]) or _FIELD.match(stamped[1])) if stamped else _continues(line)


def parse_autolog(text: str | bytes) -> tuple[AutologBlock, ...]:
    """All reports of a log, in its order; a report that was cut off has `complete` False."""
    reader = AutologReader()
    for offset, raw in lines_of(text):
        reader.line(offset, strip_ansi(raw))
    return reader.blocks


def _continues(line: str) -> bool:
    """Whether an unstamped line goes on with the value before it: only the build line of nvcc does."""
    return line.startswith("Build ")


def _take(block: dict[str, str], section: str, body: str) -> str:
    """Puts a body line's fields into the block; returns the name of the last one ('' when there is none)."""
    parts = body.split(", ") if section == "Perf" else [body]
    name = ""
    for part in parts:
        field = _FIELD.match(part)
        if field:
            name = field[1]
            block.setdefault(name, field[2])
    return name


def real_autolog_spoke(text: str) -> bool:
    """Whether the `auto_log` package itself left its mark: the second copy of its lines names its source file."""
    return any(found[1] == "autolog.py" for found in map(_FOREIGN.match, strip_ansi(text).splitlines()) if found)
