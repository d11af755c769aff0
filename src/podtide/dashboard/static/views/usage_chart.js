// The chart itself: uPlot, once for addresses and once, below, for the batch, with a common cursor.

import uPlot from "../vendor/uplot.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { count, percent } from "../logic/words.js";
import { batchOptions, usageOptions } from "./chart_options.js";

const PAST_COLUMNS = ["time", "capacity", "reserved", "need", "demand"];
const AHEAD_COLUMNS = ["high", "low", "middle"];
const BATCH_COLUMNS = ["time", "batch"];

function dataOf(columns, names) {
  return names.map((name) => columns[name]);
}

/** A chart that is made anew when its options change, and only gets new numbers otherwise. */
function useChart(options, data, range, dependencies) {
  const place = useRef(null);
  const chart = useRef(null);
  useEffect(() => {
    if (!options) return undefined;
    chart.current = new uPlot(options, data, place.current);
    chart.current.setScale("x", { min: range[0], max: range[1] });
    return () => {
      chart.current.destroy();
      chart.current = null;
    };
  }, dependencies);
  useEffect(() => {
    if (!chart.current) return;
    chart.current.setData(data, false);
    chart.current.setScale("x", { min: range[0], max: range[1] });
  }, [data[0], range[0], range[1]]);
  return place;
}

export function UsageChart({ columns, range, hasForecast, exhausted, starved, subnet, theme }) {
  const frame = useRef(null);
  const [width, setWidth] = useState(0);
  // The chart draws spans from here, so that new ones need no new chart.
  const shaded = useRef({});
  shaded.current = { exhausted, starved };
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(frame.current);
    return () => observer.disconnect();
  }, []);
  const sync = `usage-${subnet.name}`;
  const upper = width ? usageOptions({ width, theme, shaded, hasForecast, thresholds: subnet.thresholds, sync }) : null;
  const lower = width ? batchOptions({ width, theme, sync }) : null;
  const dependencies = [width, theme, hasForecast, sync, subnet.thresholds?.lower, subnet.thresholds?.upper];
  const addresses = useChart(upper, dataOf(columns, hasForecast ? [...PAST_COLUMNS, ...AHEAD_COLUMNS] : PAST_COLUMNS), range, dependencies);
  const batch = useChart(lower, dataOf(columns, BATCH_COLUMNS), range, dependencies);
  const told = `Use of subnet ${subnet.name} over time. Now ${count(subnet.reserved)} of ${count(subnet.capacity)} addresses are reserved (${percent(subnet.reserved, subnet.capacity)}), batch ${count(subnet.batch)}. ${exhausted.length} spans of exhaustion and ${starved.length} of starvation in this range.`;
  return html`
    <figure class="chart" ref=${frame} data-chart data-forecast-shown=${String(hasForecast)}>
      <figcaption class="unseen">${told}</figcaption>
      <div ref=${addresses} class="chart-addresses"></div>
      <p class="chart-key">
        ${exhausted.length > 0 && html`<span><i class="span-key exhausted"></i>exhausted</span>`}
        ${starved.length > 0 && html`<span><i class="span-key starved"></i>starved</span>`}
        ${hasForecast && html`<span><i class="span-key band"></i>forecast, 90 % band</span>`}
      </p>
      <div ref=${batch} class="chart-batch"></div>
    </figure>`;
}
