import assert from "node:assert/strict";
import { test } from "node:test";
import { addressAt, wordsOf } from "../../../src/podtide/dashboard/static/logic/addresses.js";
import { parseRoute, routeTo, tokenIn } from "../../../src/podtide/dashboard/static/logic/routes.js";
import { chartColumns, shownRange, spans, withNow } from "../../../src/podtide/dashboard/static/logic/usage_series.js";
import { visibleRows } from "../../../src/podtide/dashboard/static/logic/visible_rows.js";
import { age, count, counted, duration, percent } from "../../../src/podtide/dashboard/static/logic/words.js";

test("addresses are counted on, in both families", () => {
  assert.equal(addressAt("10.0.0.0", 255), "10.0.0.255");
  assert.equal(addressAt("10.0.255.0", 256), "10.1.0.0");
  assert.equal(addressAt("203.0.113.64", 3), "203.0.113.67");
  assert.equal(addressAt("fd00::", 255), "fd00::ff");
  assert.equal(addressAt("fd00:77::ff00", 256), "fd00:77::1:0");
  assert.equal(addressAt("2001:db8:1:2:3:4:5:6", 1), "2001:db8:1:2:3:4:5:7");
});

test("owners are little-endian on every machine", () => {
  assert.deepEqual([...wordsOf(Buffer.from([1, 0, 0, 1]).toString("base64"))], [1, 256]);
});

test("a route is read as it is written", () => {
  for (const route of [
    { tab: "subnets", name: null, node: null },
    { tab: "subnets", name: "a b/c", node: null },
    { tab: "subnets", name: "pods", node: "node-1" },
    { tab: "nodes", name: null, node: "node.example.com" },
    { tab: "networks", name: "storage", node: null },
    { tab: "health", name: null, node: null },
  ]) {
    assert.deepEqual(parseRoute(routeTo(route)), route);
  }
});

test("an unknown or broken fragment leads to the subnets", () => {
  assert.equal(parseRoute("#/wrong/x").tab, "subnets");
  assert.equal(parseRoute("#main").tab, "subnets");
  assert.equal(parseRoute("").name, null);
  assert.equal(parseRoute("#/subnets/%E0%A4%A").name, "%E0%A4%A");
});

test("a token is taken from the fragment", () => {
  assert.equal(tokenIn("#token=a%2Fb"), "a/b");
  assert.equal(tokenIn("#/subnets/token=x"), null);
  assert.equal(tokenIn("#token="), null);
});

test("rows in sight are drawn, and heights stand for the rest", () => {
  const rows = visibleRows({ total: 5000, rowHeight: 34, scrollTop: 34000, height: 680 });
  assert.ok(rows.first <= 1000 && rows.last >= 1020 && rows.last - rows.first < 60);
  assert.equal(rows.above + (rows.last - rows.first) * 34 + rows.below, 5000 * 34);
  assert.deepEqual(visibleRows({ total: 0, rowHeight: 34, scrollTop: 500, height: 100 }), { first: 0, last: 0, above: 0, below: 0 });
});

const usage = { time: [100, 105, 110], capacity: [9, 9, 9], reserved: [1, 2, 3], demand: [null, 1, 1], need: [1, 1, 2], batch: [16, 16, 4] };

test("the forecast continues the chart to the right, from what is reserved now", () => {
  const forecast = { refused: null, days: [90, 120, 130], middle: [0, 4, 5], low: [0, 3, 3], high: [0, 5, 8] };
  const columns = chartColumns(usage, forecast);
  assert.deepEqual(columns.time, [100, 105, 110, 120, 130]);
  assert.deepEqual(columns.middle, [null, null, 3, 4, 5]);
  assert.deepEqual(columns.reserved, [1, 2, 3, null, null]);
  assert.deepEqual(columns.capacity, [9, 9, 9, 9, 9]);
  assert.ok(Object.values(columns).every((column) => column.length === 5));
});

test("without a forecast, or with one that is refused, the chart ends now", () => {
  assert.deepEqual(chartColumns(usage, null).time, usage.time);
  assert.deepEqual(chartColumns(usage, { refused: "too young", days: [], middle: [], low: [], high: [] }).middle, [null, null, null]);
});

test("spans that touch are one", () => {
  assert.deepEqual(spans([0, 5, 10, 15, 20], [0, 2, 5, 0, 1], 5), [[5, 15], [20, 25]]);
});

test("a span goes on where nothing was written between two rows that have it", () => {
  assert.deepEqual(spans([0, 5, 30, 35], [0, 5, 5, 0], 5), [[5, 35]]);
  assert.deepEqual(spans([0, 5, 30, 35], [0, 5, 0, 5], 5), [[5, 10], [35, 40]]);
});

test("a span ends where the next row says that it is over", () => {
  assert.deepEqual(spans([0, 5, 7], [0, 5, 0], 5), [[5, 7]]);
});

test("the last row of the chart is what the stream told", () => {
  const subnet = { capacity: 9, reserved: 8, pods: 5, batch: 2, exhausted: true, starved: false };
  const longer = withNow({ ...usage, exhausted: [0, 0, 0], starved: [0, 0, 0], step: 5 }, subnet, 112);
  assert.deepEqual([longer.time.at(-1), longer.reserved.at(-1), longer.need.at(-1), longer.batch.at(-1), longer.exhausted.at(-1)], [112, 8, 2, 2, 1]);
  assert.ok(["time", "capacity", "demand", "starved"].every((key) => longer[key].length === 4));
  assert.equal(withNow(usage, subnet, 110), usage, "never back in time");
  assert.equal(withNow(usage, { ...subnet, reserved: null }, 112), usage);
  const seldom = withNow({ ...usage, need: [null, 7, null], exhausted: [0, 0, 0], starved: [0, 0, 0] }, { reserved: 8, capacity: 9, pods: 5, batch: 2, exhausted: true, starved: false }, 112);
  assert.equal(seldom.need.at(-1), 7, "the last that was read");
});

test("the chart starts with the first record where that is later than the range", () => {
  assert.deepEqual(shownRange([1000, 1900], 2000, 3600), [1000, 2000]);
  assert.deepEqual(shownRange([1000, 1900], 2000, 100), [1900, 2000]);
  assert.deepEqual(shownRange([1995], 2000, 3600), [1940, 2000]);
});

test("numbers and times are words", () => {
  assert.equal(count(null), "–");
  assert.equal(count(9999), "9999");
  assert.equal(count(65531), "65\u202f531");
  assert.equal(counted(1, "pod"), "1 pod");
  assert.equal(percent(251, 251), "100 %");
  assert.equal(percent(65530, 65531), "> 99 %");
  assert.equal(percent(1, 65531), "< 1 %");
  assert.equal(percent(1, 0), "–");
  assert.deepEqual([59, 61, 3700, 90000].map(duration), ["59 s", "1 min", "1 h 1 min", "1 d 1 h"]);
  assert.equal(age("2026-01-01T00:00:10Z", Date.parse("2026-01-01T00:00:05Z")), "0 s");
  assert.equal(age(null, 0), "–");
});
