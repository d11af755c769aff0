// The map of a subnet, address by address: colours tell states, lines tell nodes, the legend filters.

import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { segment } from "../live/api.js";
import { useResource } from "../live/resource.js";
import { onBlocks } from "../live/store.js";
import { poolParts } from "../logic/node_order.js";
import { count } from "../logic/words.js";
import { MapLoader } from "../map/loader.js";
import { shadeOf, STATES, statePalette } from "../map/states.js";
import { AddressReadout } from "./address_readout.js";
import { useSettled } from "./later.js";
import { Legend } from "./legend.js";
import { MapSurface } from "./map_surface.js";
import { Loading, Notice } from "./notices.js";

const ALL_STATES = (1 << STATES.length) - 1;
const SHADES_SETTLE = 5000; // milliseconds: other shades are another drawing of all of the map

/** Loads a map and keeps it fresh. */
export function useMap(subnet, kind, only = null) {
  const [map, setMap] = useState({ contents: null, touched: { blocks: [] }, error: null });
  useEffect(() => {
    setMap({ contents: null, touched: { blocks: [] }, error: null });
    const loader = new MapLoader(subnet, kind, only, {
      onContents: (contents) => setMap({ contents, touched: { blocks: [] }, error: null }),
      onBlocks: (blocks) => blocks.length && setMap((last) => ({ ...last, touched: { blocks } })),
      onError: (error) => setMap((last) => (last.error === error ? last : { ...last, error })),
    });
    const forget = onBlocks((blocks) => {
      if (blocks === null) loader.changed(null);
      else if (blocks[subnet]) loader.changed(blocks[subnet]);
    });
    return () => {
      forget();
      loader.stop();
    };
  }, [subnet, kind, only]);
  return map;
}

/** For each number of a node its shade; the same array as before where nothing differs. */
function useShades(contents, touched, nodes) {
  const settled = useSettled(nodes, SHADES_SETTLE);
  const last = useRef(null);
  return useMemo(() => {
    if (contents?.pods !== "asked") return null;
    const shades = Uint8Array.from(contents.nodes, (name) => (settled.has(name) ? shadeOf(poolParts(settled.get(name))) : 0));
    if (last.current?.length !== shades.length || shades.some((shade, number) => shade !== last.current[number])) last.current = shades;
    return last.current;
  }, [contents, touched, settled]);
}

/**
 * @param {object} props
 * @param {string} props.subnet
 * @param {Map<string, object>} props.nodes their records
 * @param {number|null} props.only a single block of a large subnet
 * @param {"light"|"dark"} props.theme
 * @param {string|null} props.node the node that is lit up
 * @param {(node: string|null) => void} props.onNode
 */
export function AddressMap({ subnet, nodes, only = null, theme, node, onNode }) {
  const { contents, touched, error } = useMap(subnet, "map", only);
  const [hidden, setHidden] = useState(0);
  const [podBlocks, setPodBlocks] = useState({ blocks: [] });
  const asked = useResource(node && contents?.pods === "asked" ? `api/nodes/${segment(node)}` : null, 10);
  const palette = useMemo(() => statePalette(theme), [theme]);
  const counts = useMemo(() => contents?.counts(node), [contents, touched, podBlocks, node]);
  const owner = node && contents ? (contents.numbers.get(node) ?? 0) : 0;
  const all = useShades(contents, touched, nodes);
  const shades = owner ? null : all; // of the node that is looked at, it is told which addresses pods have
  const look = useMemo(() => ({ owner, states: ALL_STATES & ~hidden, shades }), [owner, hidden, shades]);

  useEffect(() => {
    if (asked.data && contents) setPodBlocks({ blocks: contents.takePods(node, asked.data.addresses) });
  }, [asked.data, contents, touched]);

  if (error && !contents) return html`<${Notice} kind="problem">The map cannot be shown: ${error.message}<//>`;
  if (!contents) return html`<${Loading} what="the map" />`;
  const readout = (position) => {
    const cell = contents.at(position);
    return cell && html`<${AddressReadout} ...${cell} />`;
  };
  const pick = (position) => {
    const cell = contents.at(position);
    onNode(cell?.node && cell.node !== node ? cell.node : null);
  };
  return html`
    <${Legend} counts=${counts} hidden=${hidden} onHidden=${setHidden} theme=${theme} shaded=${shades !== null} />
    ${error && html`<${Notice} kind="problem">The map may be old: ${error.message}<//>`}
    ${shades && html`<p class="quiet">The cluster is large: the stronger the blue of a node, the more of its addresses pods need. Choose a node to see which they are.</p>`}
    ${node && html`<p class="quiet" data-lit>${owner
      ? html`<b>${node}</b> holds ${count(counts.reduce((sum, value) => sum + value, 0))} addresses here. <button class="link" onClick=${() => onNode(null)}>Show all nodes</button>`
      : html`<b>${node}</b> holds no address here.`}</p>`}
    <${MapSurface} contents=${contents} touched=${podBlocks.blocks.length ? merged(touched, podBlocks) : touched} palette=${palette} look=${look}
      name=${`Map of subnet ${subnet}`} label=${(block) => contents.bases[block] ?? ""} readout=${readout} onPick=${pick} />`;
}

function merged(first, second) {
  return { blocks: [...first.blocks, ...second.blocks] };
}
