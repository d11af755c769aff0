// All nodes, worst first. Thousands of rows are as quick as twenty: only those in sight are in the document.

import { html, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { COLUMNS, filterNodes, sortNodes } from "../logic/node_order.js";
import { routeTo } from "../logic/routes.js";
import { visibleRows } from "../logic/visible_rows.js";
import { count, counted } from "../logic/words.js";
import { useSettled } from "./later.js";
import { NodePanel, ReadyBadge } from "./node_panel.js";
import { Empty } from "./notices.js";
import { PoolBar } from "./pool_bar.js";

const ROW = 34; // pixels, as in the style sheet
const SETTLE = 1000; // milliseconds between new orders, so that rows can be read and clicked

function Heading({ column, order, onOrder }) {
  const sorted = order?.key === column.key;
  const next = () => {
    // Numbers are looked at from the top, names from A. The third click is worst first again.
    if (!sorted) onOrder({ key: column.key, descending: column.numeric });
    else if (order.descending === column.numeric) onOrder({ key: column.key, descending: !column.numeric });
    else onOrder(null);
  };
  return html`<th scope="col" class="${column.numeric && column.key !== "pool" ? "number" : ""} column-${column.key}" aria-sort=${sorted ? (order.descending ? "descending" : "ascending") : undefined}>
    <button type="button" title=${column.hint} data-sort=${column.key} onClick=${next}>${column.title}<span class="arrow" aria-hidden="true">${sorted ? (order.descending ? "▾" : "▴") : ""}</span></button></th>`;
}

function Row({ node, index, chosen, scale, onOpen }) {
  const number = (key, bad) => html`<td class="number column-${key} ${bad && node[key] > 0 ? "bad-text strong" : ""}">${count(node[key])}</td>`;
  return html`
    <tr data-node=${node.name} aria-rowindex=${index + 2} class=${chosen ? "chosen" : ""} onClick=${onOpen}>
      <th scope="row" class="column-name"><a href=${routeTo({ tab: "nodes", node: node.name })}>${node.name}</a></th>
      <td class="column-subnets">${node.subnets.join(", ")}</td>
      <td class="column-pool"><${PoolBar} node=${node} scale=${scale} /></td>
      ${number("demand")}${number("request")}${number("held")}${number("free")}${number("releasing")}${number("owed", true)}${number("waiting", true)}${number("batch")}
      <td class="column-ready" title=${node.message}><${ReadyBadge} node=${node} />${node.message && html` <span class="quiet">${node.message}</span>`}</td>
    </tr>`;
}

export function Nodes({ cluster, route }) {
  const [order, setOrder] = useState(null);
  const [text, setText] = useState("");
  const [view, setView] = useState({ scrollTop: 0, height: 800 });
  const frame = useRef(null);
  const nodes = useSettled(cluster.nodes, SETTLE);
  const sorted = useMemo(() => sortNodes(nodes.values(), order), [nodes, order]);
  const rows = useMemo(() => filterNodes(sorted, text), [sorted, text]);
  const scale = useMemo(() => rows.reduce((most, node) => Math.max(most, node.held), 0), [rows]);
  const empty = cluster.nodes.size === 0;
  useLayoutEffect(() => {
    if (empty) return undefined;
    const measure = () => setView({ scrollTop: frame.current.scrollTop, height: frame.current.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(frame.current);
    return () => observer.disconnect();
  }, [empty]);
  if (empty) {
    return html`<${Empty} title="No node yet"><p>A node appears as soon as it has a NodeNetworkConfig. The controller makes one for every Node; its log says why not.</p><//>`;
  }
  const { first, last, above, below } = visibleRows({ total: rows.length, rowHeight: ROW, ...view });
  const open = (name) => (event) => {
    if (event.target.closest("a")) return; // the link does it, with the browser's own ways (new tab, copy)
    location.hash = routeTo({ tab: "nodes", node: name });
  };
  return html`
    <div class="with-table ${route.node ? "with-panel" : ""}">
      <section class="table-view" aria-labelledby="nodes-title">
        <div class="panel-head">
          <h2 id="nodes-title">Nodes</h2>
          <label class="unseen" for="node-filter">Filter nodes by name, subnet or message</label>
          <input id="node-filter" type="search" placeholder="Filter: name, subnet, message" value=${text} onInput=${(event) => setText(event.target.value)} />
          <span class="quiet" role="status" data-node-count>${text ? `${count(rows.length)} of ${counted(cluster.nodes.size, "node")}` : counted(cluster.nodes.size, "node")}, ${order === null ? "worst first" : `by ${COLUMNS.find((column) => column.key === order.key).title.toLowerCase()}`}</span>
          ${order !== null && html`<button type="button" class="link" onClick=${() => setOrder(null)}>worst first</button>`}
          <span class="bar-key" aria-hidden="true"><i class="use-part pod"></i>pods <i class="use-part idle"></i>idle <i class="use-part releasing"></i>releasing</span>
        </div>
        <div class="table-frame tall" ref=${frame} tabindex="0" role="group" aria-label="Table of nodes" onScroll=${(event) => setView({ scrollTop: event.target.scrollTop, height: event.target.clientHeight })}>
          <table class="nodes" aria-rowcount=${rows.length + 1}>
            <thead><tr aria-rowindex="1">${COLUMNS.map((column) => html`<${Heading} key=${column.key} column=${column} order=${order} onOrder=${setOrder} />`)}</tr></thead>
            <tbody>
              ${above > 0 && html`<tr key="above" aria-hidden="true"><td colspan=${COLUMNS.length} style=${{ height: `${above}px` }}></td></tr>`}
              ${rows.slice(first, last).map((node, i) => html`<${Row} key=${node.name} node=${node} index=${first + i} chosen=${node.name === route.node} scale=${scale} onOpen=${open(node.name)} />`)}
              ${below > 0 && html`<tr key="below" aria-hidden="true"><td colspan=${COLUMNS.length} style=${{ height: `${below}px` }}></td></tr>`}
            </tbody>
          </table>
          ${rows.length === 0 && html`<p class="empty-line">No node matches "${text}".</p>`}
        </div>
      </section>
      ${route.node && html`<${NodePanel} name=${route.node} cluster=${cluster} closeTo="#/nodes" />`}
    </div>`;
}
