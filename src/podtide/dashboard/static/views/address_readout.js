// What is known of one address. State and node are on the map; pod and time are asked for once the cursor rests.

import { html, useEffect, useState } from "../html.js";
import { segment, serverNow } from "../live/api.js";
import { useResource } from "../live/resource.js";
import { age, clock } from "../logic/words.js";
import { STATES } from "../map/states.js";

const REST = 180; // milliseconds

/** @param {{address: string, state: number, node: string|null}} props */
export function AddressReadout({ address, state, node }) {
  const [rested, setRested] = useState(null);
  useEffect(() => {
    const timer = setTimeout(() => setRested(address), REST);
    return () => clearTimeout(timer);
  }, [address]);
  const { data, error } = useResource(rested === address ? `api/addresses/${segment(address)}` : null);
  const known = STATES[state];
  return html`
    <div class="readout-head"><b class="mono">${address}</b><span class="state-name">${known.title}</span></div>
    <dl>
      ${node && html`<dt>node</dt><dd>${node}</dd>`}
      ${data?.pod && html`<dt>pod</dt><dd>${data.pod}</dd>`}
      ${data?.since && html`<dt>since</dt><dd>${clock(data.since, serverNow())} <span class="quiet">(${age(data.since, serverNow())})</span></dd>`}
    </dl>
    <p class="quiet">${error ? error.message : data?.message || known.hint}</p>`;
}
