// What the charts of uPlot share: colors of the theme, axes, one style per line.
"use strict";

const color = (name) => {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
};

const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4], [1, 3], [5, 2, 1, 2, 1, 2], [10, 2]];
const shown = (value) => (value == null ? "–" : Number(value.toPrecision(6)).toString());

// Lines differ by dashes and by colors.
const styleOf = (place) => ({ stroke: color(`--line-${place % 8}`), dash: DASHES[place % 8], width: 1.5 });

// uPlot's own labels have three decimals, so that the labels of close values would be equal.
function axisOf(label, more = {}) {
  const text = color("--dim"), grid = { stroke: color("--line"), width: 1 };
  return { label, stroke: text, grid, ticks: grid, font: "11px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
    labelSize: 20, values: (plot, splits) => splits.map(shown), ...more };
}

// A chart is as wide as its place, also after the window has changed.
function fit(plot, place, height) {
  new ResizeObserver(() => {
    if (place.clientWidth && Math.abs(place.clientWidth - plot.width) > 1) plot.setSize({ width: place.clientWidth, height });
  }).observe(place);
}

const themeChanges = (again) => {
  document.addEventListener("theme", again);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
};
