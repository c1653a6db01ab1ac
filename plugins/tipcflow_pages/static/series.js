// The page Series with uPlot in place of the chart of the server: zoom that stays in the URL, clicks on runs.
"use strict";

const SERIES_HEIGHT = 360, DAY_S = 86400;
let picked = null;
var seriesChart = null;

const dayOf = (seconds) => new Date(1000 * seconds).toISOString().slice(0, 10);

function show(root, line, place, shift) {
  const run = line.points[place].run;
  if (!shift) { location.href = `${root}/runs/${encodeURIComponent(run)}`; return; }
  if (picked && picked.chain === line.chain && picked.run !== run) {
    location.href = `${root}/compare?sort=started&run=${encodeURIComponent(picked.run)}&run=${encodeURIComponent(run)}`;
    return;
  }
  picked = { chain: line.chain, run };
  document.getElementById("series-hint").textContent = `${run} chosen: Shift and a click on another run compares them.`;
}

// The zoomed days are the URL's, so that a link to the page shows the same.
function keepZoom(plot, from, to, all) {
  const state = new URL(location.href);
  for (const [name, at] of [["since", from], ["until", to]]) {
    if (all) state.searchParams.delete(name); else state.searchParams.set(name, dayOf(at));
    const field = document.querySelector(`input[name=${name}]`);
    if (field) field.value = all ? "" : dayOf(at);
  }
  history.replaceState(null, "", state);
}

function plotSeries(place, facts) {
  const key = facts.relative ? "percent" : "value";
  const lines = facts.lines.map((line) => ({ ...line, points: line.points.filter((point) => point[key] !== null) }));
  // The line connects accepted runs; every other run is a cross.
  const isAccepted = (point) => point.status === "pass" || point.status === "improvement";
  const tables = lines.map((line) => [line.points.map((point) => point.at),
    line.points.map((point) => (isAccepted(point) ? point[key] : null))]);
  const others = lines.map((line) => line.points.filter((point) => !isAccepted(point)));
  const all = tables.flatMap((table) => table[0]);
  const limits = [Math.min(...all), Math.max(...all)];
  // A value far outside is at the edge, as in the chart of the server.
  const height = (plot, value, canvas) => {
    const { min, max } = plot.scales.y;
    return plot.valToPos(Math.min(max, Math.max(min, value)), "y", canvas);
  };
  const hit = (plot) => {
    let best = null;
    lines.forEach((line) => line.points.forEach((point, found) => {
      const x = plot.valToPos(point.at, "x"), y = height(plot, point[key], false);
      const far = Math.hypot(x - plot.cursor.left, y - plot.cursor.top);
      if (far < 24 && (!best || far < best.far)) best = { far, line, found };
    }));
    return best;
  };
  const crosses = (plot) => {
    const { ctx, bbox } = plot, arm = 4 * devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left - arm, bbox.top - arm, bbox.width + 2 * arm, bbox.height + 2 * arm);
    ctx.clip();
    others.forEach((points, number) => {
      ctx.strokeStyle = color(`--line-${number % 8}`);
      ctx.lineWidth = 2 * devicePixelRatio;
      for (const point of points) {
        const x = plot.valToPos(point.at, "x", true), y = height(plot, point[key], true);
        ctx.beginPath();
        ctx.moveTo(x - arm, y - arm); ctx.lineTo(x + arm, y + arm);
        ctx.moveTo(x - arm, y + arm); ctx.lineTo(x + arm, y - arm);
        ctx.stroke();
      }
    });
    ctx.restore();
  };
  const several = new Set(lines.map((line) => line.chain)).size > 1;
  const options = {
    width: place.clientWidth, height: SERIES_HEIGHT, cursor: { drag: { x: true, y: false, setScale: true } },
    tzDate: (at) => uPlot.tzDate(new Date(1000 * at), "UTC"),
    axes: [axisOf("", { values: (plot, splits) => splits.map((at) => dayOf(at)), space: 90 }), axisOf(facts.relative ? "percent" : facts.lines[0].unit, { size: 64 })],
    series: [{ label: "UTC", value: (plot, at) => (at == null ? "–" : new Date(1000 * at).toISOString().slice(0, 16).replace("T", " ")) },
      ...lines.map((line, number) => ({ label: [line.name, ...(several ? [line.chain] : [])].join(" "), spanGaps: true,
        value: (plot, value) => shown(value), points: { show: true, size: 5 }, ...styleOf(number) }))],
    hooks: {
      draw: [crosses],
      setSelect: [(plot) => {
        if (plot.select.width < 5) return;
        keepZoom(plot, plot.posToVal(plot.select.left, "x"), plot.posToVal(plot.select.left + plot.select.width, "x"), false);
      }],
      ready: [(plot) => {
        let from = 0;
        plot.over.addEventListener("mousedown", (event) => { from = event.clientX; });
        plot.over.addEventListener("click", (event) => {
          const found = Math.abs(event.clientX - from) < 4 && hit(plot);
          if (found) show(place.dataset.root, found.line, found.found, event.shiftKey);
        });
        plot.over.addEventListener("dblclick", () => keepZoom(plot, ...limits, true));
      }],
    },
  };
  place.hidden = false;
  document.getElementById("series-static").hidden = true;
  document.getElementById("series-hint").hidden = false;
  options.width = place.clientWidth;
  seriesChart?.destroy();
  seriesChart = new uPlot(options, uPlot.join(tables), place);
  fit(seriesChart, place, SERIES_HEIGHT);
  place.dataset.drawn = String(lines.length);
}

async function drawSeries() {
  const place = document.getElementById("series-chart");
  if (!place) return;
  try {
    const response = await fetch(place.dataset.src, { headers: { Accept: "application/json" } });
    if (response.ok) plotSeries(place, await response.json());
  } catch (error) {
    // the chart of the server stays
    place.hidden = true;
    document.getElementById("series-static").hidden = false;
    console.warn(`the chart could not be drawn: ${error}`);
  }
}

document.addEventListener("DOMContentLoaded", drawSeries);
themeChanges(() => { if (seriesChart) drawSeries(); });
