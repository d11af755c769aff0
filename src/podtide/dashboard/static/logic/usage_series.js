// From the answers of the server to the columns that the chart draws: use so far, and the forecast to its right.

/** What the range buttons offer. */
export const RANGES = [
  { key: "1h", title: "1 h", seconds: 3600 },
  { key: "1d", title: "1 day", seconds: 86400 },
  { key: "90d", title: "90 days", seconds: 90 * 86400 },
  { key: "2y", title: "2 years", seconds: 730 * 86400 },
];

/**
 * One table of columns over all times, as uPlot wants it: a value that is not known at a time is null.
 * @param {object} usage answer of …/usage
 * @param {object|null} forecast answer of …/forecast
 * @returns {{time: number[], capacity: (number|null)[], reserved: (number|null)[], demand: (number|null)[],
 *   need: (number|null)[], batch: (number|null)[], middle: (number|null)[], low: (number|null)[], high: (number|null)[]}}
 */
export function chartColumns(usage, forecast) {
  const past = usage.time.length;
  const last = past ? usage.time[past - 1] : -Infinity;
  // Days before the last recorded moment would make the chart go back in time.
  const from = forecast && !forecast.refused ? forecast.days.findIndex((day) => day > last) : -1;
  const days = from < 0 ? [] : forecast.days.slice(from);
  const pad = (values) => [...values, ...days.map(() => null)];
  const ahead = (values) => {
    const column = [...Array(past).fill(null), ...(from < 0 ? [] : values.slice(from))];
    // The band starts at what is reserved now, so that it does not hang in the air.
    if (days.length && past) column[past - 1] = usage.reserved[past - 1];
    return column;
  };
  const capacity = pad(usage.capacity);
  if (past) days.forEach((_, i) => (capacity[past + i] = usage.capacity[past - 1]));
  return {
    time: [...usage.time, ...days],
    capacity,
    reserved: pad(usage.reserved),
    demand: pad(usage.demand ?? usage.time.map(() => null)),
    need: pad(usage.need),
    batch: pad(usage.batch),
    middle: ahead(forecast?.middle ?? []),
    low: ahead(forecast?.low ?? []),
    high: ahead(forecast?.high ?? []),
  };
}

/**
 * History is written every few seconds, the stream tells of each change: a last row with what is so now.
 * @param {object} usage answer of …/usage
 * @param {object} subnet its record
 * @param {number} now seconds
 */
export function withNow(usage, subnet, now) {
  if (subnet.reserved === null || !usage.time.length || now <= usage.time.at(-1)) return usage;
  const row = {
    time: now,
    capacity: subnet.capacity,
    reserved: subnet.reserved,
    demand: subnet.pods,
    need: usage.need.findLast((need) => need !== null) ?? null, // not told by the stream; a minute old at most
    batch: subnet.batch,
    exhausted: subnet.exhausted ? 1 : 0,
    starved: subnet.starved ? 1 : 0,
  };
  const longer = { ...usage };
  for (const [key, value] of Object.entries(row)) if (usage[key]) longer[key] = [...usage[key], value];
  return longer;
}

/**
 * Stretches of time with at least one second of a condition, joined where they touch. Where nothing was written between
 * two rows that both have it, it went on, as the lines do: rows are written when something changes.
 * @param {number[]} time starts of steps
 * @param {number[]} seconds per step
 * @param {number} step
 * @returns {[number, number][]}
 */
export function spans(time, seconds, step) {
  const found = [];
  for (let i = 0; i < time.length; i++) {
    if (!(seconds[i] > 0)) continue;
    const end = Math.min(time[i] + step, time[i + 1] ?? Infinity);
    const open = found.at(-1);
    if (open && (time[i] <= open[1] || seconds[i - 1] > 0)) open[1] = end;
    else found.push([time[i], end]);
  }
  return found;
}

/**
 * The part of time that is shown: the range asked for, but not the emptiness before the first record.
 * @returns {[number, number]}
 */
export function shownRange(time, now, rangeSeconds) {
  const end = Math.max(now, time.at(-1) ?? now);
  const start = Math.max(now - rangeSeconds, time[0] ?? now - rangeSeconds);
  return [Math.min(start, now - 60), end];
}
