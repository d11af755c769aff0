// A node's pool as a bar: pods, idle, releasing. All bars of a table share one scale, so that they can be compared.

import { html } from "../html.js";
import { poolParts } from "../logic/node_order.js";
import { UseBar } from "./use_bar.js";

export function PoolBar({ node, scale }) {
  const { pods, idle, releasing } = poolParts(node);
  const parts = [{ key: "pod", value: pods }, { key: "idle", value: idle }, { key: "releasing", value: releasing }];
  return html`<${UseBar} parts=${parts} whole=${Math.max(scale, 1)} label=${`${pods} for pods, ${idle} idle, ${releasing} being released`} />`;
}
