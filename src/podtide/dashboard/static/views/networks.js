// Secondary networks: how each range is cut into slices, who has which, what is reserved and what leaked.

import { html } from "../html.js";
import { segment } from "../live/api.js";
import { useResource } from "../live/resource.js";
import { routeTo } from "../logic/routes.js";
import { count, percent } from "../logic/words.js";
import { CardList } from "./card_list.js";
import { Badge, Empty, Loading, Notice } from "./notices.js";
import { SliceMap } from "./slice_map.js";
import { UseBar } from "./use_bar.js";

function NetworkCard({ network, chosen }) {
  const label = network.slices === null ? `${count(network.slicesUsed)} slices in use` : `${count(network.slicesUsed)} of ${count(network.slices)} slices in use`;
  return html`
    <a class="card" href=${routeTo({ tab: "networks", name: network.name })} data-network=${network.name} aria-current=${chosen ? "true" : undefined}>
      <span class="card-head"><b class="card-title">${network.name}</b><span class="badges">
        ${network.leaks > 0 && html`<${Badge} kind="bad" title="Allocations whose pod is gone">leaks ${count(network.leaks)}<//>`}
        ${network.slices !== null && network.slicesUsed >= network.slices && html`<${Badge} kind="warn" title="No slice is left for another node">no slice left<//>`}</span></span>
      <span class="mono quiet card-cidrs">${network.ranges.join(", ")}</span>
      ${network.slices !== null && html`<${UseBar} parts=${[{ key: "pod", value: network.slicesUsed }]} whole=${network.slices} label=${label} />`}
      <span class="card-figures">${network.sliceSize && html`<span>${label}, each a /${network.sliceSize}</span>`}<span>${count(network.allocated)} addresses · ${count(network.reservations)} reservations</span></span>
      ${network.message && html`<span class="card-note bad-text">${network.message}</span>`}
    </a>`;
}

function NetworkDetail({ name, network }) {
  const { data, error } = useResource(`api/networks/${segment(name)}`, 5);
  if (error && !data) return html`<${Notice} kind="problem">${error.status === 404 ? `Network ${name} is not there (any more).` : error.message}<//>`;
  if (!data) return html`<${Loading} what="the network" />`;
  return html`
    <div class="detail-head"><h2>${name}</h2><span class="mono quiet">${network?.ranges.join(" · ")}</span></div>
    ${error && html`<${Notice} kind="problem">What is shown may be old: ${error.message}<//>`}
    <section class="panel" aria-label="Slices"><h3>Slices by node</h3>
      ${data.nodes.length === 0 ? html`<p class="quiet">No node has a slice yet.</p>` : html`
      <${SliceMap} nodes=${data.nodes} />
      <div class="table-frame" tabindex="0" role="group" aria-label="Table of slices"><table class="wide" data-slices>
        <thead><tr><th scope="col">Node</th><th scope="col">Slice</th><th scope="col">Use</th><th scope="col" class="number">Addresses</th><th scope="col">Pool</th></tr></thead>
        <tbody>${data.nodes.map((entry) => html`<tr key=${entry.node + entry.slice}><th scope="row">${entry.node ? html`<a href=${routeTo({ tab: "nodes", node: entry.node })}>${entry.node}</a>` : "all nodes"}</th><td class="mono">${entry.slice}</td>
          <td class="column-pool"><${UseBar} parts=${[{ key: "pod", value: entry.allocated }]} whole=${entry.capacity} label=${`${entry.allocated} of ${entry.capacity} addresses`} /></td>
          <td class="number nowrap">${count(entry.allocated)} of ${count(entry.capacity)} <span class="quiet">${percent(entry.allocated, entry.capacity)}</span></td><td>${entry.message ? html`<span class="bad-text">${entry.message}</span>` : html`<span class="mono quiet">${entry.pool}</span>`}</td></tr>`)}</tbody>
      </table></div>`}
    </section>
    <section class="panel" aria-label="Leaks"><h3>Leaks <span class="quiet">${count(data.leaks.length)}</span></h3>
      ${data.leaks.length === 0 ? html`<p class="quiet">None: every allocation has a pod.</p>` : html`<ul class="plain-list">${data.leaks.map((leak, i) => html`<li key=${i}>${typeof leak === "string" ? leak : html`<span class="mono">${leak.address}</span> ${leak.pod ?? ""} <span class="quiet">${leak.message ?? ""}</span>`}</li>`)}</ul>`}
    </section>
    <section class="panel" aria-label="Reservations"><h3>Reservations <span class="quiet">${count(data.reservations.length)}</span></h3>
      ${data.reservations.length === 0 ? html`<p class="quiet">None.</p>` : html`
      <div class="table-frame medium" tabindex="0" role="group" aria-label="Table of reservations"><table class="wide">
        <thead><tr><th scope="col">Address</th><th scope="col">Pod</th><th scope="col">Node</th><th scope="col">State</th></tr></thead>
        <tbody>${data.reservations.map((entry) => html`<tr key=${entry.address}><th scope="row" class="mono">${entry.address}</th><td>${entry.pod}</td><td>${entry.node ?? "–"}</td><td>${entry.leaving ? "leaving" : "in use"}</td></tr>`)}</tbody>
      </table></div>`}
    </section>`;
}

export function Networks({ route }) {
  const { data, error } = useResource("api/networks", 5);
  if (error && !data) return html`<${Notice} kind="problem">${error.message}<//>`;
  if (!data) return html`<${Loading} what="the networks" />`;
  if (!data.networks.length) {
    return html`<${Empty} title="No secondary network"><p>A network is listed once a NetworkAttachmentDefinition names podtide (or whereabouts) and a node slice size.</p><//>`;
  }
  const name = route.name ?? data.networks[0].name;
  return html`
    <div class="with-list">
      <${CardList} label="Secondary networks" chosen=${name}>${data.networks.map((network) => html`<${NetworkCard} key=${network.name} network=${network} chosen=${network.name === name} />`)}<//>
      <article class="subnet-detail" data-detail=${name}><${NetworkDetail} key=${name} name=${name} network=${data.networks.find((network) => network.name === name)} /></article>
    </div>`;
}
