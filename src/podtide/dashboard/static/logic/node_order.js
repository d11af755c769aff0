// The order of nodes in the table, and which of them a text finds.

/**
 * @typedef {{key: string, title: string, hint: string, numeric: boolean}} Column
 * @type {Column[]}
 */
export const COLUMNS = [
  { key: "name", title: "Node", hint: "name of the Node", numeric: false },
  { key: "subnets", title: "Subnets", hint: "subnets that the node has addresses of", numeric: false },
  { key: "pool", title: "Pool", hint: "addresses held, by what they are used for", numeric: true },
  { key: "demand", title: "Demand", hint: "pods that need an address", numeric: true },
  { key: "request", title: "Request", hint: "addresses asked for", numeric: true },
  { key: "held", title: "Held", hint: "addresses in the pool", numeric: true },
  { key: "free", title: "Free", hint: "addresses held that no pod has", numeric: true },
  { key: "releasing", title: "Releasing", hint: "addresses on the way back to the subnet", numeric: true },
  { key: "owed", title: "Owed", hint: "addresses asked for and not granted yet", numeric: true },
  { key: "waiting", title: "Waiting", hint: "pods without an address", numeric: true },
  { key: "batch", title: "Batch", hint: "batch that the last request was computed with", numeric: true },
  { key: "ready", title: "State", hint: "whether the agent is in contact and has what it needs", numeric: false },
];

const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** Owed, then waiting, then least free; equal ones by name, so that rows do not jump. */
export function worstFirst(a, b) {
  return (
    b.owed - a.owed ||
    b.waiting - a.waiting ||
    (a.free ?? Infinity) - (b.free ?? Infinity) ||
    byText(a.name, b.name) ||
    0
  );
}

function valueOf(node, key) {
  if (key === "subnets") return node.subnets.join(" ");
  if (key === "pool") return node.held;
  // Nodes in trouble come first, those of which nothing is known next.
  if (key === "ready") return node.ready === false ? 0 : node.ready === null ? 1 : 2;
  return node[key];
}

/**
 * @param {Iterable<object>} nodes
 * @param {{key: string, descending: boolean}|null} order null: worst first
 * @returns {object[]}
 */
export function sortNodes(nodes, order) {
  const rows = [...nodes];
  // Infinity - Infinity is NaN, which sort takes for "equal": then the name decides.
  if (order === null) return rows.sort((a, b) => worstFirst(a, b) || byText(a.name, b.name));
  const sign = order.descending ? -1 : 1;
  return rows.sort((a, b) => {
    const left = valueOf(a, order.key);
    const right = valueOf(b, order.key);
    // What is not known stands last in both directions.
    if (left === null || right === null) return (left === null) - (right === null) || byText(a.name, b.name);
    return sign * byText(left, right) || byText(a.name, b.name);
  });
}

/**
 * Every word has to be found in the node's name, its subnets or its message.
 * @param {object[]} nodes
 * @param {string} text
 */
export function filterNodes(nodes, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return nodes;
  return nodes.filter((node) => {
    const content = `${node.name} ${node.subnets.join(" ")} ${node.message}`.toLowerCase();
    return words.every((word) => content.includes(word));
  });
}

/**
 * How a node's pool is used. Parts of it are not known for agents that do not state their demand.
 * @returns {{pods: number, idle: number, releasing: number}}
 */
export function poolParts(node) {
  const releasing = Math.min(node.releasing, node.held);
  const idle = Math.min(node.free ?? Math.max(0, node.held - releasing - (node.demand ?? 0)), node.held - releasing);
  return { pods: node.held - releasing - idle, idle, releasing };
}
