"""Axes of charts: round ticks, and the frame that all charts share.

A chart is as wide as its place and has a fixed height in pixels. Lines are paths in a box of 1000 x 1000 units
that is stretched; marks and texts are placed by percentages, so that they keep their shape.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

BOX = 1000
# Pixels for the labels of the x axis.
_FOOT = 16
_STEPS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True)
class Axis:
    """A linear axis.

    Attributes:
        low, high: values at its ends; `low` < `high`.
    """

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float], *, spare: float = 0.06) -> "Axis":
        """Return an axis for these values, with a margin at both ends.

        Args:
            values: finite values; none gives an axis from 0 to 1.
        """
        known = list(values)
        low, high = min(known, default=0.0), max(known, default=1.0)
        width = high - low or abs(high) * 0.1 or 1.0
        return cls(low - spare * width, high + spare * width)

    def share(self, value: float) -> float:
        """Return the place of a value as a share of the axis."""
        return (value - self.low) / (self.high - self.low)

    def ticks(self, most: int = 4) -> list[float]:
        """Return at most that many round values on the axis."""
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in _STEPS if power * factor >= rough * 0.999)
        first = math.ceil(self.low / step)
        return [number * step for number in range(first, math.floor(self.high / step) + 1)][:most]


def path(points: Iterable[tuple[float, float | None]], x: Axis, y: Axis) -> str:
    """Return the commands of a line; a point without a value interrupts it."""
    commands: list[str] = []
    draws = False
    for at, value in points:
        if value is None:
            draws = False
            continue
        commands.append(f"{'L' if draws else 'M'}{place(x, at)} {BOX - place(y, value)}")
        draws = True
    return "".join(commands)


def place(axis: Axis, value: float) -> int:
    """Return a value in units of the box."""
    return round(BOX * axis.share(value))


def per_cent(axis: Axis, value: float) -> str:
    """Return a value's place on the x axis for marks and texts."""
    return f"{100 * axis.share(value):.1f}%"


def frame(
    body: Sequence[str], *, label: str, height: int, x: Sequence[tuple[str, str]], y: Sequence[tuple[float, str]]
) -> Markup:
    """Return the chart.

    Args:
        body: its parts, as SVG of which all texts are escaped.
        label: its description for screen readers.
        height: of the plot, pixels.
        x: (place, text) of the labels below the plot.
        y: (share of the height from below, text) of grid lines.
    """
    grid = "".join(
        f'<line class="grid" x1="0" x2="100%" y1="{height * (1 - share):.1f}" y2="{height * (1 - share):.1f}"/>'
        for share, _ in y
    )
    names = "".join(
        f'<text x="2" y="{max(9.0, height * (1 - share) - 2):.1f}">{escape(text)}</text>' for share, text in y
    )
    anchors = ["start", *["middle"] * (len(x) - 2), "end"] if len(x) > 1 else ["start"]
    feet = "".join(
        f'<text x="{at}" y="{height + 12}" text-anchor="{anchor}">{escape(text)}</text>'
        for (at, text), anchor in zip(x, anchors, strict=False)
    )
    role = "group" if any("<a " in part for part in body) else "img"  # an image must not contain links
    return Markup(  # noqa: S704 - all texts are escaped
        f'<svg class="plot" width="100%" height="{height + _FOOT}" role="{role}" aria-label="{escape(label)}">'
        f"{grid}{''.join(body)}{names}{feet}</svg>"
    )


def stretched(paths: Iterable[tuple[str, str]], height: int) -> str:
    """Return lines as (class, commands) in the stretched box."""
    lines = "".join(f'<path class="{kind}" d="{commands}"/>' for kind, commands in paths if commands)
    box = f'viewBox="0 0 {BOX} {BOX}" preserveAspectRatio="none"'
    return f'<svg {box} width="100%" height="{height}" overflow="visible">{lines}</svg>'


def short(value: float) -> str:
    """Return a tick's text: at most four significant digits."""
    return f"{value:.4g}"
