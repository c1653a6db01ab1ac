"""Apache Otava run by run, in its own environment (it pins numpy), without importing tipcflow.

stdin: one JSON list of values a line. stdout: one JSON list of [index, relative change] a line.
"""

import json
import sys

from otava.analysis import compute_change_points

WINDOW, P_VALUE, FLOOR, FIRST = 50, 0.001, 0.02, 8
# A change point may move slightly as runs are added: within this distance it is the same one.
SAME = 5


def judge(values: list[float]) -> list[tuple[int, float]]:
    """Each change point once, at the first run that detects it."""
    raised: list[tuple[int, float]] = []
    known: list[int] = []
    for end in range(FIRST, len(values) + 1):
        points, _ = compute_change_points(values[:end], window_len=WINDOW, max_pvalue=P_VALUE, min_magnitude=FLOOR)
        for point in points:
            if all(abs(point.index - one) > SAME for one in known):
                known.append(point.index)
                raised.append((end - 1, point.stats.mean_2 / point.stats.mean_1 - 1))
    return raised


for line in sys.stdin:
    print(json.dumps(judge(json.loads(line))), flush=True)
