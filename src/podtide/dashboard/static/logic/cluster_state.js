// What the page knows of the cluster, and how events of the stream change it. Pure: every function returns a new
// state and shares what did not change, so that a view redraws only when its own part is another object.

/**
 * @typedef {object} ClusterState
 * @property {object|null} cluster
 * @property {Map<string, object>} subnets by name
 * @property {Map<string, object>} nodes by name
 * @property {object[]} decisions oldest first
 * @property {object|null} health
 */

/** Older decisions are dropped, so that a page that stays open for weeks does not grow. */
export const KEPT_DECISIONS = 500;

/** @returns {ClusterState} */
export function emptyState() {
  return { cluster: null, subnets: new Map(), nodes: new Map(), decisions: [], health: null };
}

/**
 * @param {ClusterState} state
 * @param {string} event the event's name
 * @param {object} data
 * @returns {ClusterState}
 */
export function applyEvent(state, event, data) {
  if (event === "snapshot") return applyChange(emptyState(), data);
  if (event === "change") return applyChange(state, data);
  return state; // an event of a later server
}

function applyChange(state, data) {
  return {
    cluster: data.cluster ?? state.cluster,
    subnets: changed(state.subnets, data.subnets, data.removedSubnets),
    nodes: changed(state.nodes, data.nodes, data.removedNodes),
    decisions: appended(state.decisions, data.decisions),
    health: data.health ?? state.health,
  };
}

function changed(records, updates, removals) {
  if (!updates?.length && !removals?.length) return records;
  const next = new Map(records);
  for (const name of removals ?? []) next.delete(name);
  for (const record of updates ?? []) next.set(record.name, record);
  return next;
}

function appended(decisions, additions) {
  if (!additions?.length) return decisions;
  // After a reconnect the server may send a decision again.
  const known = new Set(decisions.map((decision) => decision.id));
  const fresh = additions.filter((decision) => !known.has(decision.id));
  return fresh.length ? [...decisions, ...fresh].slice(-KEPT_DECISIONS) : decisions;
}
