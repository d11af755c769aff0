// Use of a subnet over time, with its forecast when asked for.

import { html, useMemo, useState } from "../html.js";
import { segment, serverNow } from "../live/api.js";
import { useResource } from "../live/resource.js";
import { count } from "../logic/words.js";
import { chartColumns, RANGES, shownRange, spans, withNow } from "../logic/usage_series.js";
import { useModule } from "./later.js";
import { Loading, Notice } from "./notices.js";

/** Seconds between questions: an hour moves every few seconds, two years do not. */
const EVERY = { "1h": 5, "1d": 30, "90d": 300, "2y": 300 };

/** The start of a range that ends now, as the server wants it. */
function since(range) {
  return new Date(serverNow() - range.seconds * 1000).toISOString().replace(/\.\d+Z$/, "Z");
}

/** Half of the page's script is the chart's: it runs after all else is shown. */
const loadChart = () => import("./usage_chart.js");

/** Without an allocator there is no history to ask for. */
export function NoHistory() {
  return html`<h3>Use over time</h3>
    <p class="quiet" data-no-history>The history of a subnet is the allocator's, and this page was started without one: start it with <code>--allocator</code> or <code>--database</code> to see use over time and forecasts.</p>`;
}

export function Usage({ subnet, theme }) {
  const chart = useModule(loadChart);
  const [rangeKey, setRangeKey] = useState("1h");
  const [asked, setAsked] = useState(false);
  const range = RANGES.find((candidate) => candidate.key === rangeKey);
  const base = `api/subnets/${segment(subnet.name)}`;
  const usage = useResource(`${base}/usage?step=auto`, EVERY[rangeKey], { key: rangeKey, query: () => `&since=${since(range)}` });
  const forecast = useResource(asked ? `${base}/forecast` : null, 600);
  // In longer ranges a moment is less than a pixel.
  const live = rangeKey === "1h" ? subnet : null;
  const shown = useMemo(() => usage.data && usage.data.time.length > 0 && prepared(usage.data, live, asked ? forecast.data : null, range), [usage.data, live, forecast.data, asked, range]);
  const toggle = () => {
    // Days ahead are a hair's breadth beside an hour.
    if (!asked && range.seconds < 90 * 86400) setRangeKey("90d");
    setAsked(!asked);
  };
  return html`
    <div class="panel-head">
      <h3>Use over time</h3>
      <div class="button-row" role="group" aria-label="Time range">
        ${RANGES.map(({ key, title }) => html`<button key=${key} type="button" data-range=${key} aria-pressed=${String(key === rangeKey)} onClick=${() => setRangeKey(key)}>${title}</button>`)}
      </div>
      <button type="button" class="toggle" data-forecast aria-pressed=${String(asked)} onClick=${toggle}>Forecast</button>
    </div>
    ${usage.error && html`<${Notice} kind="problem">${usage.data ? "The chart may be old: " : "The chart cannot be drawn: "}${usage.error.message}<//>`}
    ${(!usage.data || !chart) && !usage.error && html`<${Loading} what="the history" />`}
    ${usage.data && !usage.data.time.length && html`<p class="quiet">Nothing is recorded in this range yet. The first point comes within seconds of the subnet's first use.</p>`}
    ${shown && chart && html`<${chart.UsageChart} ...${shown} subnet=${subnet} theme=${theme} />`}
    ${asked && html`<${Forecast} answer=${forecast} />`}`;
}

function prepared(history, live, forecast, range) {
  const now = serverNow() / 1000;
  const usage = live ? withNow(history, live, now) : history;
  const columns = chartColumns(usage, forecast);
  const [start, end] = shownRange(usage.time, now, range.seconds);
  const ahead = columns.time.at(-1);
  // As far ahead as is looked back, at most: else the past is squeezed into the corner.
  const until = ahead > end ? Math.min(ahead, end + Math.max(end - start, 30 * 86400)) : end;
  return {
    columns,
    range: [start, until],
    hasForecast: Boolean(forecast && !forecast.refused),
    exhausted: spans(usage.time, usage.exhausted, usage.step),
    starved: spans(usage.time, usage.starved, usage.step),
  };
}

const LEVELS = { lower: "lower threshold t", upper: "upper threshold T", capacity: "capacity" };

function Forecast({ answer }) {
  if (answer.error) return html`<${Notice} kind="problem">No forecast: ${answer.error.message}<//>`;
  if (!answer.data) return html`<${Loading} what="the forecast" />`;
  const { refused, reaches, basis, growthPerDay } = answer.data;
  if (refused) return html`<div data-forecast-refused><${Notice} kind="note">${refused}<//></div>`;
  return html`
    <div class="table-frame">
    <table class="small" data-forecast-table>
      <caption>${growthPerDay === null ? "" : `${growthPerDay >= 0 ? "+" : "−"}${Math.abs(growthPerDay).toFixed(1)} addresses a day. `}The date that use reaches each level; the 90 % band is from earliest to latest.</caption>
      <thead><tr><th scope="col">Level</th><th scope="col" class="number">Addresses</th><th scope="col">Reached</th><th scope="col">Earliest</th><th scope="col">Latest</th></tr></thead>
      <tbody>${reaches.map((reach) => html`<tr key=${reach.what}><th scope="row">${LEVELS[reach.what] ?? reach.what}</th><td class="number">${count(reach.level)}</td>
        <td>${reach.date ?? (reach.message || "not within a year")}</td><td>${reach.earliest ?? "–"}</td><td>${reach.latest ?? "–"}</td></tr>`)}</tbody>
    </table></div>
    <p class="quiet">${basis}</p>`;
}
