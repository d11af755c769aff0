import assert from "node:assert/strict";
import { test } from "node:test";
import { filterNodes, poolParts, sortNodes } from "../../../src/podtide/dashboard/static/logic/node_order.js";

const node = (name, more = {}) => ({ name, subnets: ["pods"], demand: 1, held: 8, free: 4, releasing: 0, owed: 0, waiting: 0, ready: true, message: "", ...more });
const names = (rows) => rows.map((row) => row.name);

test("worst first is by owed, then waiting, then least free, then name", () => {
  const rows = [node("e"), node("d"), node("c", { free: 0 }), node("b", { waiting: 3 }), node("a2", { owed: 1 }), node("a1", { owed: 5 })];
  assert.deepEqual(names(sortNodes(rows, null)), ["a1", "a2", "b", "c", "d", "e"]);
});

test("nodes whose free addresses are not known stand last among equals, by name", () => {
  assert.deepEqual(names(sortNodes([node("y", { free: null }), node("x", { free: null }), node("z")], null)), ["z", "x", "y"]);
});

test("a column sorts both ways, and what is not known stays last", () => {
  const rows = [node("a", { demand: 5 }), node("b", { demand: null }), node("c", { demand: 40 })];
  assert.deepEqual(names(sortNodes(rows, { key: "demand", descending: true })), ["c", "a", "b"]);
  assert.deepEqual(names(sortNodes(rows, { key: "demand", descending: false })), ["a", "c", "b"]);
});

test("state sorts trouble first, then unknown, then ready", () => {
  const rows = [node("a"), node("b", { ready: null }), node("c", { ready: false })];
  assert.deepEqual(names(sortNodes(rows, { key: "ready", descending: false })), ["c", "b", "a"]);
});

test("sorting leaves the input as it is", () => {
  const rows = [node("b"), node("a")];
  sortNodes(rows, { key: "name", descending: false });
  assert.deepEqual(names(rows), ["b", "a"]);
});

test("a filter wants every word, in name, subnet or message, in any case", () => {
  const rows = [node("worker-1", { message: "Out of contact" }), node("worker-2", { subnets: ["edge"] })];
  assert.deepEqual(names(filterNodes(rows, "WORKER contact")), ["worker-1"]);
  assert.deepEqual(names(filterNodes(rows, "edge")), ["worker-2"]);
  assert.deepEqual(names(filterNodes(rows, "  ")), ["worker-1", "worker-2"]);
  assert.deepEqual(names(filterNodes(rows, "edge contact")), []);
});

test("the parts of a pool add up to what is held", () => {
  assert.deepEqual(poolParts(node("a", { held: 20, free: 6, releasing: 4 })), { pods: 10, idle: 6, releasing: 4 });
  assert.deepEqual(poolParts(node("a", { held: 20, free: null, demand: null, releasing: 0 })), { pods: 0, idle: 20, releasing: 0 });
  const odd = poolParts(node("a", { held: 3, free: 9, releasing: 5 }));
  assert.equal(odd.pods + odd.idle + odd.releasing, 3);
});
