// One node: its numbers, the arithmetic of its last decision, conditions, pods and addresses. Asked for while it is
// open; the numbers on top follow the stream.

import { html, useEffect, useRef } from "../html.js";
import { segment, serverNow } from "../live/api.js";
import { useResource } from "../live/resource.js";
import { age, count } from "../logic/words.js";
import { Arithmetic } from "./arithmetic.js";
import { Later } from "./later.js";
import { Badge, Loading, Notice } from "./notices.js";
import { PoolBar } from "./pool_bar.js";

const FIGURES = [
  ["Demand", "demand", "pods that need an address"],
  ["Request", "request", "addresses asked for"],
  ["Held", "held", "addresses in the pool"],
  ["Free", "free", "held, and no pod has it"],
  ["Releasing", "releasing", "on the way back to the subnet"],
  ["Owed", "owed", "asked for and not granted yet"],
  ["Waiting", "waiting", "pods without an address"],
  ["Batch", "batch", "batch that the last request was computed with"],
];

export function ReadyBadge({ node }) {
  if (node.ready === null) return html`<${Badge} kind="plain" title="Nothing is known of its agent yet">unknown<//>`;
  return node.ready ? html`<${Badge} kind="good">ready<//>` : html`<${Badge} kind="bad">not ready<//>`;
}

/** @param {{name: string, cluster: object, closeTo: string}} props closeTo: the fragment without the panel */
export function NodePanel({ name, cluster, closeTo }) {
  const { data, error } = useResource(`api/nodes/${segment(name)}`, 5);
  const title = useRef(null);
  // The reader who opened it by keyboard goes on reading here, and is back on the map or in the table afterwards.
  useEffect(() => {
    const opener = document.activeElement;
    return () => opener.isConnected && opener.focus({ preventScroll: true });
  }, []);
  useEffect(() => title.current.focus({ preventScroll: true }), [name]);
  const node = cluster.nodes.get(name) ?? data;
  const close = () => {
    location.hash = closeTo;
  };
  return html`
    <aside class="side-panel" aria-labelledby="node-title" data-node-panel=${name} onKeyDown=${(event) => event.key === "Escape" && close()}>
      <div class="side-head">
        <h2 id="node-title" ref=${title} tabindex="-1">${name}</h2>
        ${node && html`<${ReadyBadge} node=${node} />`}
        <button type="button" class="icon-button" aria-label="Close the node's panel" title="Close (Escape)" onClick=${close}>
          <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true"><path d="M3 3l10 10M13 3L3 13" stroke="currentColor" stroke-width="1.8" stroke-linecap="round"/></svg></button>
      </div>
      ${!node && !error && html`<${Loading} what="the node" />`}
      ${error && html`<${Notice} kind="problem">${error.status === 404 ? `Node ${name} is not there (any more).` : error.message}<//>`}
      ${node && html`
        ${node.message && html`<${Notice} kind="problem">${node.message}<//>`}
        <${PoolBar} node=${node} scale=${node.held} />
        <dl class="figures compact">${FIGURES.map(([label, key, hint]) => html`<div key=${key} class="figure" title=${hint}><dt>${label}</dt><dd>${count(node[key])}</dd></div>`)}</dl>
        <${Later}><p class="quiet">Subnets: ${node.subnets.map((subnet, i) => html`${i ? ", " : ""}<a href=${`#/subnets/${segment(subnet)}/nodes/${segment(name)}`}>${subnet}</a>`)}</p><//>`}
      ${data && html`<${Later}><${Details} data=${data} /><//>`}
    </aside>`;
}

function Details({ data }) {
  return html`
    ${data.decision && html`<section aria-label="Last decision of the node"><h3>Last decision</h3><p>${data.decision.text} <span class="quiet">(${age(data.decision.time, serverNow())} ago)</span></p><${Arithmetic} decision=${data.decision} /></section>`}
    ${data.conditions.length > 0 && html`<section aria-label="Conditions of the node"><h3>Conditions</h3>
      <ul class="conditions">${data.conditions.map((condition) => html`<li key=${condition.type}><b>${condition.type}</b> ${condition.status}${condition.reason ? html` · ${condition.reason}` : ""}
        <span class="quiet"> ${condition.message}${condition.since ? ` (${age(condition.since, serverNow())})` : ""}</span></li>`)}</ul></section>`}
    <section aria-label="Pods of the node"><h3>Pods <span class="quiet">${count(data.pods.length)}</span></h3>
      <${PanelTable} columns=${["Pod", "Address"]} rows=${data.pods.map((pod) => [podWords(pod), pod.address ?? "–"])} /></section>
    <section aria-label="Addresses of the node"><h3>Addresses <span class="quiet">${count(data.addresses.length)}</span></h3>
      <${PanelTable} columns=${["Address", "Pod or state", "Since"]} rows=${data.addresses.map((entry) => [entry.address, entry.pod ?? entry.state, entry.since ? age(entry.since, serverNow()) : "–"])} /></section>`;
}

/** Its phase is told where it is not what one expects. */
function podWords({ name, phase, message }) {
  if (message) return `${name} (${phase}: ${message})`;
  return phase === "Running" ? name : `${name} (${phase})`;
}

const MONO = new Set(["Address"]);

function PanelTable({ columns, rows }) {
  if (!rows.length) return html`<p class="quiet">None.</p>`;
  return html`<div class="table-frame" tabindex="0" role="group" aria-label=${columns.join(", ")}><table class="small">
    <thead><tr>${columns.map((column) => html`<th key=${column} scope="col">${column}</th>`)}</tr></thead>
    <tbody>${rows.map((row, i) => html`<tr key=${row[0] + i}><th scope="row" class=${MONO.has(columns[0]) ? "mono nowrap" : "breakable"}>${row[0]}</th>${row.slice(1).map((cell, j) => html`<td key=${j} class=${MONO.has(columns[j + 1]) ? "mono nowrap" : columns[j + 1] === "Since" ? "nowrap" : columns[j + 1] === "Pod or state" ? "breakable" : ""}>${cell}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}
