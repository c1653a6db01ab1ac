"""Draws throughput over devices as an image, with matplotlib (extra `plot`)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcflow.domain import ConfigError
from tipcflow.domain.numbers.units import percentage

if TYPE_CHECKING:
    from tipcflow.cli.scaling.panels import Panel, Point

FORMATS = (".png", ".svg")
# Inches; a panel per model, one below the other.
_WIDTH, _HEIGHT = 8.0, 4.8
_DOTS_PER_INCH = 150
_MEASURED, _PREVIOUS, _LINEAR = "#1f5fa8", "#c0641a", "#767676"
# Below this share of the axis, the devices of two topologies are too close for labels next to each other.
_CLOSE = 0.07


def check_plot(file: Path) -> None:
    """Check what can be checked before the first training.

    Raises:
        ConfigError: another file ending, or no such folder.
        ImportError: matplotlib is not installed.
    """
    if file.suffix.lower() not in FORMATS:
        raise ConfigError(
            "unknown image format",
            key="--plot",
            found=str(file),
            expected=f"a file name that ends with {' or '.join(FORMATS)}",
        )
    if not file.parent.is_dir() or file.is_dir():
        what = "is a folder" if file.is_dir() else "is in a folder that does not exist"
        raise ConfigError(what, key="--plot", found=str(file), expected="a file in an existing folder")
    import matplotlib  # noqa: F401  # named by tipcflow.cli.extras if it is missing


def write_plot(panels: Sequence["Panel"], file: Path) -> str:
    """Write the image; return a note for the user.

    Raises:
        ConfigError: the file cannot be written.
    """
    from matplotlib.figure import Figure

    if not panels:
        return "no plot was written: no topology has a speed"
    figure = Figure(figsize=(_WIDTH, _HEIGHT * len(panels)), layout="constrained")
    for axes, panel in zip(figure.subplots(len(panels), squeeze=False)[:, 0], panels, strict=True):
        _draw(axes, panel)
    try:
        figure.savefig(file, dpi=_DOTS_PER_INCH)
    except OSError as error:
        raise ConfigError(f"cannot write the plot: {error.strerror}", key="--plot", found=str(file)) from error
    return f"plot written to {file}"


def _draw(axes: Any, panel: "Panel") -> None:
    """Draw one model: linear, previous, measured."""
    axes.set_title(panel.title, loc="left", fontweight="bold", fontsize=11, pad=22 if panel.subtitle else 8)
    if panel.subtitle:
        axes.text(0, 1.02, panel.subtitle, transform=axes.transAxes, fontsize=8.5, color=_LINEAR)
    line = panel.line
    base, largest = line[0], line[-1].devices
    ends = (base.devices, largest)
    if largest > base.devices:
        axes.plot(
            ends,
            [base.speed / base.devices * devices for devices in ends],
            linestyle="--",
            color=_LINEAR,
            linewidth=1.2,
            label=f"linear from {base.topology}",
        )
    if panel.previous:
        axes.plot(
            [point.devices for point in panel.previous],
            [point.speed for point in panel.previous],
            linestyle=":",
            marker="s",
            markersize=4.5,
            color=_PREVIOUS,
            label=panel.previous_label,
        )
    slower = [point for point in panel.points if point not in line]
    _points(axes, slower, "slower topology with the same number of devices", linestyle="none", markerfacecolor="w")
    repeats = max(len(point.repeats) for point in panel.points)
    _points(axes, line, "measured" + (f", median and range of {repeats} repeats" if repeats > 1 else ""))
    _label(axes, panel)


def _points(axes: Any, points: Sequence["Point"], label: str, **style: str) -> None:
    """Draw topologies with the range of their repeats; without points, no entry of the legend is made."""
    if points:
        axes.errorbar(
            [point.devices for point in points],
            [point.speed for point in points],
            yerr=_ranges(points),
            marker="o",
            capsize=3,
            color=_MEASURED,
            linewidth=1.8,
            label=label,
            **style,
        )


def _label(axes: Any, panel: "Panel") -> None:
    """Set axes, legend and the values at the points."""
    largest, line = panel.line[-1].devices, panel.line
    names: dict[int, list[str]] = {}
    for point in panel.points:
        names.setdefault(point.devices, []).append(point.topology)
        share = "" if point.efficiency is None else f"\n{percentage(point.efficiency, 0)}"
        # Right of the line, with two exceptions: linear and measured start at the first point; slower topologies.
        left, above = point is line[0] or point not in line, point is line[0]
        axes.annotate(
            ("" if point in line else f"{point.topology}\n") + _figure(point.speed) + share,
            (point.devices, point.speed),
            xytext=(-8 if left else 9, 2 if above else -2),
            textcoords="offset points",
            ha="right" if left else "left",
            va="bottom" if above else "top",
            fontsize=8,
            color=_MEASURED,
        )
    axes.set_xticks(list(names), _ticks(names, largest), fontsize=8.5)
    axes.margins(x=0.1)
    axes.set_ylim(bottom=0, top=axes.get_ylim()[1] * 1.08)
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.set_xlabel("devices on all nodes, and topology: nodes (n) and devices per node (g)")
    axes.set_ylabel("samples/s of all devices")
    axes.grid(axis="y", color="#e2e2e2")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], loc="upper left", frameon=False, fontsize=8.5)


def _ticks(names: dict[int, list[str]], largest: int) -> list[str]:
    """Return the labels of the ticks: the number of devices above the topologies; lower where two are close."""
    labels, before, lowered = [], -largest, False
    for devices, topologies in names.items():
        lowered = (devices - before) / largest < _CLOSE and not lowered
        labels.append("\n" * 2 * lowered + "\n".join([str(devices), *topologies]))
        before = devices
    return labels


def _ranges(points: Sequence["Point"]) -> tuple[list[float], list[float]]:
    """Return the distances from the median to the slowest and to the fastest repeat."""
    below = [point.speed - min(point.repeats, default=point.speed) for point in points]
    above = [max(point.repeats, default=point.speed) - point.speed for point in points]
    return [max(0.0, value) for value in below], [max(0.0, value) for value in above]


def _figure(speed: float) -> str:
    """Return a speed with three significant digits or more."""
    return f"{speed:,.0f}" if speed >= 1000 else f"{speed:.3g}" if speed < 100 else f"{speed:.0f}"
