// The fragment of the address bar: which tab is open, and what is looked at. So the back button works, and a view
// can be sent to a colleague.

export const TABS = ["subnets", "nodes", "waiting", "decisions", "networks", "health"];

/**
 * `#/subnets/NAME/nodes/NODE`: tab, the one chosen there, and the node whose panel is open.
 * @typedef {{tab: string, name: string|null, node: string|null}} Route
 * @param {string} fragment
 * @returns {Route}
 */
export function parseRoute(fragment) {
  const parts = fragment.replace(/^#\/?/, "").split("/").filter(Boolean).map(decoded);
  const tab = TABS.includes(parts[0]) ? parts[0] : "subnets";
  if (parts[0] !== tab) return { tab, name: null, node: null };
  if (tab === "nodes") return { tab, name: null, node: parts[1] ?? null };
  return { tab, name: parts[1] ?? null, node: parts[2] === "nodes" ? (parts[3] ?? null) : null };
}

/** @param {Partial<Route> & {tab: string}} route */
export function routeTo({ tab, name = null, node = null }) {
  if (tab === "nodes") return node ? `#/nodes/${encodeURIComponent(node)}` : "#/nodes";
  const chosen = name ? `/${encodeURIComponent(name)}` : "";
  return `#/${tab}${chosen}${chosen && node ? `/nodes/${encodeURIComponent(node)}` : ""}`;
}

/** The token in `#token=…`, or null. Browsers never send the fragment, so it stands in no server's log. */
export function tokenIn(fragment) {
  const found = /^#\/?token=([^&]*)/.exec(fragment);
  return found && found[1] ? decoded(found[1]) : null;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a stray % is taken as it is
  }
}
