import assert from "node:assert/strict";
import { test } from "node:test";
import { KEPT_DECISIONS, applyEvent, emptyState } from "../../../src/podtide/dashboard/static/logic/cluster_state.js";

const snapshot = {
  cluster: { name: "c" },
  subnets: [{ name: "a", free: 1 }, { name: "b", free: 2 }],
  nodes: [{ name: "n1" }, { name: "n2" }],
  decisions: [{ id: 1 }, { id: 2 }],
  health: { api: { ok: true } },
};
const loaded = () => applyEvent(emptyState(), "snapshot", snapshot);

test("a snapshot replaces all that was known", () => {
  const later = applyEvent(loaded(), "snapshot", { ...snapshot, subnets: [], nodes: [{ name: "n3" }], decisions: [] });
  assert.deepEqual([...later.nodes.keys()], ["n3"]);
  assert.equal(later.subnets.size, 0);
  assert.deepEqual(later.decisions, []);
});

test("a change replaces whole records, removes, and leaves the rest", () => {
  const before = loaded();
  const after = applyEvent(before, "change", { subnets: [{ name: "a", free: 9 }], removedSubnets: ["b"] });
  assert.deepEqual([...after.subnets.values()], [{ name: "a", free: 9 }]);
  assert.equal(before.subnets.size, 2, "the state before is as it was");
  assert.equal(after.nodes, before.nodes, "what did not change is the same object");
  assert.equal(after.health, before.health);
});

test("a record that was removed and is there again in one change is there", () => {
  const after = applyEvent(loaded(), "change", { removedNodes: ["n1"], nodes: [{ name: "n1", held: 4 }] });
  assert.deepEqual(after.nodes.get("n1"), { name: "n1", held: 4 });
});

test("a decision that is sent twice is listed once", () => {
  const after = applyEvent(loaded(), "change", { decisions: [{ id: 2 }, { id: 3 }] });
  assert.deepEqual(after.decisions.map((decision) => decision.id), [1, 2, 3]);
});

test("old decisions are dropped", () => {
  const many = Array.from({ length: KEPT_DECISIONS + 10 }, (_, i) => ({ id: 100 + i }));
  const after = applyEvent(loaded(), "change", { decisions: many });
  assert.equal(after.decisions.length, KEPT_DECISIONS);
  assert.equal(after.decisions.at(-1).id, 100 + KEPT_DECISIONS + 9);
});

test("an event of a later server changes nothing", () => {
  const before = loaded();
  assert.equal(applyEvent(before, "surprise", { nodes: [] }), before);
});
