// The map of a subnet with more than 2^18 addresses: a cell is a /24, coloured by how much of it is in use, a row of
// 256 is a /16. A click looks into a /24, address by address.

import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { count, percent } from "../logic/words.js";
import { BLOCK } from "../map/geometry.js";
import { SCALE_TITLES, scaleColours, scalePalette } from "../map/states.js";
import { AddressMap, useMap } from "./address_map.js";
import { MapSurface } from "./map_surface.js";
import { Loading, Notice } from "./notices.js";

const LOOK = { owner: 0, states: 0xffff };

/** @param {{subnet: string, nodes: Map<string, object>, theme: "light"|"dark", node: string|null, onNode: (node: string|null) => void}} props */
export function UtilizationMap({ subnet, nodes, theme, node, onNode }) {
  const { contents, touched, error } = useMap(subnet, "utilization");
  const [zoomed, setZoomed] = useState(null);
  const zoom = useRef(null);
  useEffect(() => zoom.current?.scrollIntoView({ block: "nearest" }), [zoomed]);
  const palette = useMemo(() => scalePalette(theme), [theme]);
  if (error && !contents) return html`<${Notice} kind="problem">The map cannot be shown: ${error.message}<//>`;
  if (!contents) return html`<${Loading} what="the map" />`;
  const prefix = `/${contents.prefix}`;
  const readout = (position) => {
    const cell = contents.at(position);
    return cell && html`
      <div class="readout-head"><b class="mono">${cell.base}${prefix}</b></div>
      <p>${count(cell.used)} of 256 in use (${percent(cell.used, 256)})</p><p class="quiet">Click or Enter: address by address.</p>`;
  };
  return html`
    <ul class="legend scale" aria-label=${`Addresses in use per ${prefix}`}>
      ${SCALE_TITLES.map((title, step) => html`<li key=${title}><span class="swatch" style=${{ background: scaleColours(theme)[step] }}></span>${title}</li>`)}
    </ul>
    <p class="quiet">A cell is a ${prefix} of 256 addresses, row by row. Colour tells how much of it is in use.</p>
    <${MapSurface} contents=${contents} touched=${touched} palette=${palette} look=${LOOK} name=${`Utilization of subnet ${subnet} per ${prefix}`}
      label=${(block) => contents.bases[block * BLOCK] ?? ""} readout=${readout} onPick=${(position) => contents.at(position) && setZoomed(contents.at(position))} />
    ${zoomed && html`
      <section class="zoomed" ref=${zoom} aria-label=${`Addresses of ${zoomed.base}${prefix}`} data-zoomed>
        <h4 class="mono">${zoomed.base}${prefix} <button class="link" onClick=${() => setZoomed(null)}>close</button></h4>
        <${AddressMap} subnet=${subnet} nodes=${nodes} only=${zoomed.at} theme=${theme} node=${node} onNode=${onNode} />
      </section>`}`;
}
