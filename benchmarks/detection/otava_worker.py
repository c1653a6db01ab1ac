"""Apache Otava alone, run by run; runs in an environment of its own (it pins numpy) and imports nothing of ours.

stdin: one JSON list of values a line. stdout: one JSON list of [index, relative change] a line.
"""

import json
import sys

from otava.analysis import compute_change_points

WINDOW, P_VALUE, FLOOR, FIRST = 50, 0.001, 0.02, 8
# A change point may still move a little as runs come in: so near to a known one it is the same.
SAME = 5


def judge(values: list[float]) -> list[tuple[int, float]]:
    """Each change point once, at the first run at which it is found."""
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
