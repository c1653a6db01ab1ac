"""What a training process says of its place in the world.

    rank 1 of 2, backend gloo, device cpu, seed 2026

is what the sample suite prints once per process, after the process group stands. `, precision amp` may stand
before the seed.
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
    """Every rank line of a log, each once, in the order of the log.

    The launcher's log holds that of local rank 0; `workerlog.N` those of one process (and, when the launcher
    appended to an older file, of its predecessors: the last one speaks for the process).
    """
    found: dict[RankReport, None] = {}
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
            found.pop(line, None)
            found[line] = None
    return tuple(found)
