// The loss curves of a run, one line per rank. The data come from our own JSON route; plot.js has the style.
"use strict";

const LOSS_HEIGHT = 320;
let drawn = "", chart = null;

// A point without a finite loss has no place on the axis: crosses at the foot.
function crosses(curves, places) {
  return (plot) => {
    plot.ctx.save();
    plot.ctx.strokeStyle = color("--bad");
    plot.ctx.lineWidth = 2 * devicePixelRatio;
    const foot = plot.bbox.top + plot.bbox.height - 6 * devicePixelRatio, arm = 4 * devicePixelRatio;
    curves.forEach((one, number) => {
      for (const at of one.broken) {
        const x = plot.valToPos(places[number][one.x.indexOf(at)], "x", true);
        plot.ctx.beginPath();
        plot.ctx.moveTo(x - arm, foot - arm); plot.ctx.lineTo(x + arm, foot + arm);
        plot.ctx.moveTo(x - arm, foot + arm); plot.ctx.lineTo(x + arm, foot - arm);
        plot.ctx.stroke();
      }
    });
    plot.ctx.restore();
  };
}

function plotLosses(place, curves) {
  const counted = curves.every((one) => one.iterations.length === one.x.length && one.x.length);
  const places = curves.map((one) => (counted ? one.iterations : one.x));
  const several = new Set(curves.map((one) => one.step)).size > 1;
  const unit = counted ? "iteration" : "logged sample";
  const lines = curves.map((one, number) => ({
    label: (several ? `${one.short} ${one.name}` : one.name) + (one.broken.length ? ` (${one.broken.length} nan or inf)` : ""),
    value: (plot, value) => shown(value), points: { show: one.x.length <= 200, size: 4 }, ...styleOf(number),
  }));
  const options = {
    width: place.clientWidth, height: LOSS_HEIGHT, scales: { x: { time: false } }, hooks: { draw: [crosses(curves, places)] },
    axes: [axisOf(unit), axisOf("loss", { size: 60 })],
    series: [{ label: unit, value: (plot, value) => shown(value) }, ...lines],
  };
  chart?.destroy();
  chart = new uPlot(options, uPlot.join(curves.map((one, number) => [places[number], one.y])), place);
  fit(chart, place, LOSS_HEIGHT);
  place.dataset.drawn = String(curves.length);
  place.dataset.axis = unit;
}

async function draw() {
  const place = document.getElementById("loss-chart");
  if (!place) return;
  const note = document.getElementById("loss-note");
  const tell = (text) => { note.textContent = text; note.hidden = !text; };
  try {
    const response = await fetch(place.dataset.src, { headers: { Accept: "application/json" } });
    const body = await response.text();
    if (!response.ok) { tell("The losses cannot be loaded."); return; }
    const state = body + color("--text");
    if (drawn === state && place.childElementCount) return;
    drawn = state;
    const curves = JSON.parse(body).curves;
    place.hidden = !curves.length;
    tell(curves.length ? "" : "No training loss was logged.");
    if (curves.length) plotLosses(place, curves);
  } catch (error) {
    tell(`The losses could not be drawn: ${error}`);
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
themeChanges(again);
