"""Parser of the rank and world size that a training process reports.

    rank 1 of 2, backend gloo, device cpu, seed 2026

is printed by the sample suite once per process, after the process group is created. `, precision amp` may
precede the seed.
"""

import re

from tipcflow.domain import RankReport
from tipcflow.parse.text import lines_of, strip_ansi

_LINE = re.compile(
    r"^\s*rank (?P<rank>\d+) of (?P<world>\d+)"
    r"(?:, backend (?P<backend>[\w.-]+))?(?:, device (?P<device>[\w.:-]+))?(?:, precision (?P<precision>[\w.-]+))?"
    r"(?:, seed (?P<seed>-?\d+|None))?\s*$"
)


def parse_ranks(text: str | bytes, *, node: str = "") -> tuple[RankReport, ...]:
    """Return every rank line of a log once, in the order of the log.

    The launcher's log holds the line of local rank 0; `workerlog.N` holds those of one process (and, if the
    launcher appended to an older file, of its predecessors: the last line is the one of the process).
    """
    reports: dict[RankReport, None] = {}
    for _, raw in lines_of(text):
        match = _LINE.match(strip_ansi(raw))
        if match:
            seed = match["seed"]
            line = RankReport(
                node=node,
                rank=int(match["rank"]),
                world_size=int(match["world"]),
                backend=match["backend"] or "",
                device=match["device"] or "",
                precision=match["precision"] or "",
                seed=None if seed in (None, "None") else int(seed),
            )
            reports.pop(line, None)
            reports[line] = None
    return tuple(reports)
