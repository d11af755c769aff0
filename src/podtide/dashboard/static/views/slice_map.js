// Slices beside each other in address order, each filled as far as it is used: where a range is full, and where a
// node is about to be.

import { html } from "../html.js";
import { percent } from "../logic/words.js";

/** @param {{nodes: {node: string, slice: string, capacity: number, allocated: number}[]}} props */
export function SliceMap({ nodes }) {
  return html`<ol class="slice-map" aria-label="Slices, filled as far as they are used">
    ${nodes.map((entry) => {
      const told = `${entry.node}: ${entry.slice}, ${entry.allocated} of ${entry.capacity} (${percent(entry.allocated, entry.capacity)})`;
      return html`<li key=${entry.node + entry.slice} title=${told} class=${entry.allocated >= entry.capacity ? "full" : ""}>
        <i style=${{ height: `${entry.capacity ? (100 * entry.allocated) / entry.capacity : 0}%` }}></i><span class="unseen">${told}</span></li>`;
    })}
  </ol>`;
}
