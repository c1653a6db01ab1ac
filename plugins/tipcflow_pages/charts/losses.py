"""Training losses of several runs on one pair of axes."""

import math
from collections.abc import Sequence

from markupsafe import Markup

from tipcflow.report.curves import Curve
from tipcflow_pages.charts.axes import Axis, frame, path, per_cent, short, stretched

HEIGHT = 240
# More points than a wide screen has columns are not visible.
MOST = 800


def loss_chart(curves: Sequence[tuple[int, Curve]], *, label: str) -> Markup:
    """Return the chart; nan and inf are crosses at the foot.

    Args:
        curves: (place of the run in the comparison, its curve).
    """
    finite = [y for _, curve in curves for y in curve.y if y is not None and math.isfinite(y)]
    total = max((curve.total for _, curve in curves), default=1)
    x, y = Axis(0.0, float(max(total - 1, 1))), Axis.around(finite)
    lines = [(f"run-{run}", path(zip(curve.x, curve.y, strict=True), x, y)) for run, curve in curves]
    crosses = [
        f'<text class="broken" text-anchor="middle" x="{per_cent(x, at)}" y="{HEIGHT - 3}">×</text>'
        for _, curve in curves
        for at in curve.broken[:50]
    ]
    grid = [(y.share(tick), short(tick)) for tick in y.ticks(5)]
    feet = [(per_cent(x, tick), f"{tick:.0f}") for tick in (0.0, x.high / 2, x.high)] if total > 2 else []
    return frame([stretched(lines, HEIGHT), *crosses], label=label, height=HEIGHT, x=feet, y=grid)
