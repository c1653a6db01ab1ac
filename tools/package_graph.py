"""Draws the packages and their imports: docs/images/packages.svg, from the import graph of the sources.

    python tools/package_graph.py            # write the file
    python tools/package_graph.py --check    # exit code 1 if the file is out of date

An arrow means "imports". An arrow that a longer path implies is left out, so the diagram shows the layers.
"""

import argparse
import sys
import tomllib
from collections import defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import escape

import grimp

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "images" / "packages.svg"
# The sub-packages of this package are drawn as boxes of their own; every other root package is one box.
SPLIT = "tipcflow"
PLUGIN = "tipcflow_pages"
LABELS = {
    "devcluster": "devcluster (local)",
    "tipcflow_operators": "operators (Airflow)",
    PLUGIN: "plugins (Airflow UI)",
}
BOX_W, BOX_H, GAP_X, GAP_Y, MARGIN = 156, 32, 28, 34, 16

Edges = dict[str, set[str]]


def import_graph() -> Edges:
    """Which boxes each box imports."""
    sys.path[:0] = [str(ROOT / folder) for folder in ("src", "operators", "plugins")]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    roots = [*settings["tool"]["importlinter"]["root_packages"]]
    graph = grimp.build_graph(*dict.fromkeys([*roots, PLUGIN]), include_external_packages=False, cache_dir=None)
    packages = {module for module in graph.modules if graph.find_children(module)}

    def box(module: str) -> str:
        parts = module.split(".")
        if parts[0] != SPLIT:
            return parts[0]
        return parts[1] if len(parts) > 1 and ".".join(parts[:2]) in packages else ""

    edges: Edges = defaultdict(set)
    for module in sorted(graph.modules):
        if not (source := box(module)):
            continue
        targets = {box(other) for other in graph.find_modules_directly_imported_by(module)}
        edges[source] |= targets - {source, ""}
    return dict(edges)


def reduced(edges: Edges) -> Edges:
    """The edges that no longer path implies."""

    @cache
    def reachable(source: str) -> frozenset[str]:
        return frozenset().union(*({target} | reachable(target) for target in edges.get(source, ())))

    return {
        source: {t for t in targets if not any(t in reachable(other) for other in targets - {t})}
        for source, targets in edges.items()
    }


def layers_of(boxes: list[str], edges: Edges) -> dict[str, int]:
    """The layer of each box, 0 at the bottom: one more than the highest box that it imports."""

    @cache
    def layer(name: str) -> int:
        return max((layer(target) + 1 for target in edges.get(name, ())), default=0)

    return {name: layer(name) for name in boxes}


def with_waypoints(layer: dict[str, int], edges: Edges) -> tuple[list[list[str]], list[list[str]]]:
    """The rows from top to bottom, and each edge as a path that has one point in every row it crosses."""
    rows: list[list[str]] = [[] for _ in range(max(layer.values()) + 1)]
    for name in sorted(layer):
        rows[layer[name]].append(name)
    paths = []
    for source in sorted(edges):
        for target in sorted(edges[source]):
            path = [source]
            for at in range(layer[source] - 1, layer[target], -1):
                path.append(f"{source}>{target}@{at}")
                rows[at].append(path[-1])
            paths.append([*path, target])
    return rows[::-1], paths


def ordered(rows: list[list[str]], paths: list[list[str]]) -> dict[str, float]:
    """The horizontal center of every point: neighbors are placed close to each other, without overlap."""
    near: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        for above, below in pairwise(path):
            near[above].append(below)
            near[below].append(above)
    width = {point: (14 if ">" in point else BOX_W) + GAP_X for row in rows for point in row}
    x = {point: float(at * (BOX_W + GAP_X)) for row in rows for at, point in enumerate(row)}
    for turn in range(60):
        for row in rows if turn % 2 else rows[::-1]:
            ideal = {p: sum(x[q] for q in near[p]) / len(near[p]) if near[p] else x[p] for p in row}
            row.sort(key=lambda point: (ideal[point], point))
            _spread(row, ideal, width, x)
    left = min(x[point] - width[point] / 2 for point in x)
    return {point: x[point] - left for point in x}


def _spread(row: list[str], ideal: dict[str, float], width: dict[str, int], x: dict[str, float]) -> None:
    """Place a row in its order, near the ideal positions and without overlap."""
    at = float("-inf")
    for point in row:
        x[point] = max(ideal[point], at + width[point] / 2)
        at = x[point] + width[point] / 2
    shift = sum(ideal[point] - x[point] for point in row) / len(row)
    for point in row:
        x[point] += shift


def svg(edges: Edges) -> str:
    """Return the diagram as SVG."""
    kept = reduced(edges)
    layer = layers_of(sorted(kept), kept)
    rows, paths = with_waypoints(layer, kept)
    center = {point: x + MARGIN for point, x in ordered(rows, paths).items()}
    top = {point: MARGIN + at * (BOX_H + GAP_Y) for at, row in enumerate(rows) for point in row}
    width = round(max(center.values()) + BOX_W / 2 + MARGIN)
    height = MARGIN * 2 + len(rows) * BOX_H + (len(rows) - 1) * GAP_Y
    lines = [
        "<!-- Written by tools/package_graph.py; do not edit. -->",
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="14">',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0 8 4 0 8z" fill="#607d8b"/></marker></defs>',
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff"/>',
        '<g fill="none" stroke="#607d8b" stroke-width="1.3" marker-end="url(#head)">',
        *(f'<path d="{_curve(path, center, top)}"/>' for path in paths),
        "</g>",
        *(_box(name, center[name], top[name]) for name in sorted(kept)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _curve(path: list[str], center: dict[str, float], top: dict[str, int]) -> str:
    """One edge from the bottom of its box, through its waypoints, to the top of the imported box."""
    x, y = center[path[0]], top[path[0]] + BOX_H
    parts = [f"M{x:.0f} {y}"]
    for point in path[1:]:
        to_x, to_y = center[point], top[point]
        bend = (to_y - y) / 2
        parts.append(f"C{x:.0f} {y + bend:.0f} {to_x:.0f} {to_y - bend:.0f} {to_x:.0f} {to_y}")
        x, y = to_x, to_y
        if ">" in point:
            y += BOX_H
            parts.append(f"V{y}")
    return " ".join(parts)


def _box(name: str, center: float, top: int) -> str:
    fill, stroke = ("#fff3e0", "#ef6c00") if name in LABELS else ("#e3f2fd", "#1565c0")
    return (
        f'<g><rect x="{center - BOX_W / 2:.0f}" y="{top}" width="{BOX_W}" height="{BOX_H}" rx="6" fill="{fill}" '
        f'stroke="{stroke}"/><text x="{center:.0f}" y="{top + BOX_H / 2 + 5:.0f}" text-anchor="middle" '
        f'fill="#102027">{escape(LABELS.get(name, name))}</text></g>'
    )


def main() -> int:
    """Write the diagram, or check it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 if the file is out of date"
    )
    text = svg(import_graph())
    if parser.parse_args().check:
        if TARGET.exists() and TARGET.read_text() == text:
            return 0
        print(f"{TARGET.relative_to(ROOT)} is out of date: run `make docs`", file=sys.stderr)
        return 1
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
