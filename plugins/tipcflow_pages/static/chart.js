// The loss curves of a run, one line per rank. The data come from our own JSON route, plotly.js from the package.
"use strict";

const color = (name) => {
  const probe = Object.assign(document.createElement("span"), { className: "probe" });
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
};
let drawn = "";

// 4.8 MB of script, so only when the chart comes into view.
let loading = null;
function plotly(source) {
  loading ??= new Promise((resolve) => {
    const script = Object.assign(document.createElement("script"), { src: source });
    script.addEventListener("load", () => resolve(window.Plotly));
    script.addEventListener("error", () => { loading = null; resolve(null); });
    document.head.append(script);
  });
  return loading;
}

function traces(curves) {
  const several = new Set(curves.map((one) => one.step)).size > 1;
  return curves.flatMap((one) => {
    const name = several ? `${one.short} ${one.name}` : one.name;
    const line = { x: one.x, y: one.y, name, mode: one.x.length > 200 ? "lines" : "lines+markers", marker: { size: 4 },
      line: { width: 1.5 }, connectgaps: false, hovertemplate: "%{y:.6g} at sample %{x}<extra>%{fullData.name}</extra>" };
    if (!one.broken.length) return [line];
    // nan and inf have no place on the axis: crosses at its foot
    const crosses = { x: one.broken, y: one.broken.map(() => 0), yaxis: "y2", name: `${name}: nan or inf`, mode: "markers",
      marker: { symbol: "x", size: 9, color: color("--bad") }, hovertemplate: "not finite at sample %{x}<extra></extra>" };
    return [line, crosses];
  });
}

function layout() {
  const text = color("--text"), grid = color("--line");
  const axis = { gridcolor: grid, zerolinecolor: grid, linecolor: grid };
  return {
    margin: { l: 56, r: 12, t: 8, b: 40 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: text, size: 12, family: "system-ui, sans-serif" }, hovermode: "closest", showlegend: true,
    legend: { orientation: "h", y: 1.02, yanchor: "bottom" },
    xaxis: { ...axis, title: { text: "logged sample" } }, yaxis: { ...axis, title: { text: "loss" } },
    yaxis2: { overlaying: "y", range: [-0.02, 1], visible: false, fixedrange: true },
  };
}

async function draw() {
  const place = document.getElementById("loss-chart");
  if (!place) return;
  const note = document.getElementById("loss-note");
  try {
    const answer = await fetch(place.dataset.src, { headers: { Accept: "application/json" } });
    const body = await answer.text();
    if (!answer.ok) { note.textContent = "The losses cannot be loaded."; return; }
    const state = body + color("--text");
    if (drawn === state && place.childElementCount) return;
    drawn = state;
    const curves = JSON.parse(body).curves;
    place.hidden = !curves.length;
    note.textContent = curves.length ? "" : "No training loss was logged.";
    if (!curves.length) return;
    note.textContent = "Loading …";
    const library = await plotly(place.dataset.plotly);
    note.textContent = library ? "" : "plotly.js could not be loaded.";
    if (!library) return;
    await library.react(place, traces(curves), layout(), { displayModeBar: false, responsive: true });
    place.dataset.drawn = String(curves.length);
  } catch (error) {
    note.textContent = `The losses could not be drawn: ${error}`;
  }
}

// Drawn when it comes into view, and again when there is news or other colors.
let seen = false;
const again = () => { if (seen) draw(); };
document.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("loss");
  if (!place) return;
  new IntersectionObserver((entries, observer) => {
    if (!entries.some((one) => one.isIntersecting)) return;
    observer.disconnect();
    seen = true;
    draw();
  }, { rootMargin: "300px" }).observe(place);
});
document.addEventListener("fresh", again);
document.addEventListener("theme", again);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
