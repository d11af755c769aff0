// How the charts look: series, axes, and the shaded spans behind them. Lines differ by dash as well as by colour.

import uPlot from "../vendor/uplot.js";
import { count } from "../logic/words.js";

const COLOURS = {
  light: { ink: "#4a5565", grid: "#e4e8ed", capacity: "#3b4656", reserved: "#0a62a6", fill: "#0a62a617", need: "#a8467f", demand: "#00785a", band: "#0a62a626", exhausted: "#e8a20026", exhaustedStrip: "#e8a200", starved: "#c43d0a1f", starvedStrip: "#c43d0a", threshold: "#8a94a3", batch: "#6b4fa0" },
  dark: { ink: "#a3afbf", grid: "#253040", capacity: "#c6d0dd", reserved: "#5db8fb", fill: "#5db8fb24", need: "#f08bc4", demand: "#3fcf9f", band: "#5db8fb2b", exhausted: "#f0b42926", exhaustedStrip: "#f0b429", starved: "#f2703a26", starvedStrip: "#f2703a", threshold: "#6b788a", batch: "#b49af0" },
};
const STRIP = 4; // CSS pixels
const FONT = '11px Inter, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "Liberation Sans", Arial, sans-serif';

function axis(colours, extra) {
  return { stroke: colours.ink, font: FONT, grid: { stroke: colours.grid, width: 1 }, ticks: { show: false }, ...extra };
}

/** For axes, where a million has no room. */
const shortCount = (tick) => (tick >= 1e6 ? `${tick / 1e6} M` : count(tick));

const value = (_, number) => (number === null || number === undefined ? "–" : count(Math.round(number)));

/** Times as everybody on call writes them: 24 hours, ISO dates. */
const TIMES = [
  [86400 * 365, "{YYYY}", null, null, null, null, null, null, 1],
  [86400 * 28, "{YYYY}-{MM}", null, null, null, null, null, null, 1],
  [86400, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
  [3600, "{HH}:{mm}", "\n{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
  [60, "{HH}:{mm}", "\n{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", "\n{MM}-{DD}", null, "\n{MM}-{DD}", null, null, null, 1],
];
const MOMENT = "{YYYY}-{MM}-{DD} {HH}:{mm}:{ss}";

/** The same on both charts, so that a moment stands at one place. */
const PADDING = [8, 18, 0, 0];

/** The legend tells the values under the cursor; without one, the last that are known. */
function tellLast(chart) {
  if (chart.cursor.idx !== null && chart.cursor.idx !== undefined) return;
  // Capacity reaches into the future; what is reserved does not.
  const idx = (chart.data[2] ?? chart.data[1]).findLastIndex((number) => number !== null);
  if (idx >= 0) chart.setLegend({ idx }, false);
}
const LAST_VALUES = { setCursor: [tellLast], setData: [tellLast], ready: [tellLast] };

/** Behind the lines: spans of exhaustion and starvation over the full height, thresholds as lines. */
function backdrop(shaded, colours, thresholds) {
  return (chart) => {
    const { ctx, bbox } = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const kind of ["exhausted", "starved"]) {
      for (const [from, to] of shaded.current[kind] ?? []) {
        const left = chart.valToPos(from, "x", true);
        const right = chart.valToPos(to, "x", true);
        ctx.fillStyle = colours[kind];
        ctx.fillRect(left, bbox.top, Math.max(1, right - left), bbox.height);
        // A strip in full colour on top: behind the use the shade is faint.
        ctx.fillStyle = colours[`${kind}Strip`];
        ctx.fillRect(left, bbox.top + (kind === "starved" ? STRIP * devicePixelRatio : 0), Math.max(1, right - left), STRIP * devicePixelRatio);
      }
    }
    const capacity = chart.data[1].findLast((number) => number !== null);
    if (thresholds && capacity) {
      ctx.strokeStyle = colours.threshold;
      ctx.fillStyle = colours.threshold;
      ctx.font = FONT.replace("11px", `${Math.round(11 * devicePixelRatio)}px`);
      ctx.setLineDash([2, 4]);
      for (const [letter, share] of [["t", thresholds.lower], ["T", thresholds.upper]]) {
        const y = Math.round(chart.valToPos(share * capacity, "y", true)) + 0.5;
        ctx.beginPath();
        ctx.moveTo(bbox.left, y);
        ctx.lineTo(bbox.left + bbox.width, y);
        ctx.stroke();
        ctx.textAlign = "right";
        ctx.fillText(letter, bbox.left + bbox.width - 3, y - 4);
      }
    }
    ctx.restore();
  };
}

/** @param {{width: number, theme: "light"|"dark", shaded: {current: object}, hasForecast: boolean, thresholds: object|null, sync: string}} look */
export function usageOptions({ width, theme, shaded, hasForecast, thresholds, sync }) {
  const colours = COLOURS[theme];
  const line = (label, key, extra = {}) => ({ label, stroke: colours[key], width: 1.5, points: { show: false }, value, ...extra });
  const ahead = { spanGaps: true };
  return {
    width,
    height: width < 560 ? 220 : 236,
    padding: PADDING,
    cursor: { sync: { key: sync }, drag: { x: false, y: false } },
    legend: { live: true },
    scales: { x: { time: true }, y: { range: (_, low, high) => [0, Math.max(8, (high ?? 1) * 1.06)] } },
    axes: [axis(colours, { values: TIMES, space: 70 }), axis(colours, { size: 56, values: (_, ticks) => ticks.map(shortCount) })],
    series: [
      { label: "time", value: timeValue },
      line("capacity", "capacity", { dash: [8, 4], width: 1.25 }),
      line("reserved", "reserved", { fill: colours.fill, width: 2 }),
      // Read once a minute, while use is written every few seconds: between two readings the line goes on.
      line("need (batch 1)", "need", { dash: [5, 3], spanGaps: true }),
      line("demand (pods)", "demand", { spanGaps: true }),
      ...(hasForecast
        ? [
            line("at most", "reserved", { ...ahead, width: 0 }),
            line("at least", "reserved", { ...ahead, width: 0 }),
            line("forecast", "reserved", { ...ahead, dash: [2, 3], width: 2 }),
          ]
        : []),
    ],
    bands: hasForecast ? [{ series: [5, 6], fill: colours.band }] : [],
    hooks: { drawClear: [backdrop(shaded, colours, thresholds)], ...LAST_VALUES },
  };
}

const format = uPlot.fmtDate(MOMENT);
const timeValue = (_, seconds) => (seconds === null || seconds === undefined ? "–" : format(new Date(seconds * 1000)));

export function batchOptions({ width, theme, sync }) {
  const colours = COLOURS[theme];
  return {
    width,
    height: 66,
    padding: [8, 18, 8, 0],
    cursor: { sync: { key: sync }, drag: { x: false, y: false }, y: false },
    legend: { show: true, live: true },
    scales: { x: { time: true }, y: { range: (_, low, high) => [0, Math.max(2, (high ?? 1) * 1.25)] } },
    axes: [axis(colours, { show: false }), axis(colours, { size: 56, space: 20, values: (_, ticks) => ticks.map((tick) => count(tick)) })],
    series: [{ label: "time", show: true, value: timeValue }, { label: "batch", stroke: colours.batch, width: 1.75, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }), value }],
    hooks: LAST_VALUES,
  };
}
