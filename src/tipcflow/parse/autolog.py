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
        for field, metric in _MEASURED.items():
            try:
                value = float(self.fields.get(field, "None").removesuffix("%"))
            except ValueError:
                continue
            yield Sample(metric, value, unit_of(metric), Phase.INFER, offset=self.offset)


def parse_autolog(text: str | bytes) -> tuple[AutologBlock, ...]:
    """All reports of a log, in its order; a report that was cut off has `complete` False."""
    blocks: list[dict[str, str]] = []
    offsets: list[int] = []
    section, last = "", ""
    for offset, raw in lines_of(text):
        line = strip_ansi(raw)
        stamped = _LINE.match(line)
        if stamped is None:
            if last and _continues(line):
                blocks[-1][last] = f"{blocks[-1][last]}\n{line.strip()}"
            # Whatever else stands between belongs to somebody else, and so does what follows it.
            last = ""
            continue
        body = stamped[2]
        title = _TITLE.match(body)
        if title:
            if not section or _ORDER.index(title[1]) <= _ORDER.index(section):
                blocks.append({})
                offsets.append(offset)
            section, last = title[1], ""
        elif section:
            last = _take(blocks[-1], section, body)
    return tuple(
        AutologBlock(fields=fields, offset=offset, complete="inference_time(ms)" in fields)
        for fields, offset in zip(blocks, offsets, strict=True)
    )


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
