// All subnets as cards, and the chosen one in full: use over time and its map.

import { html } from "../html.js";
import { routeTo } from "../logic/routes.js";
import { count, percent } from "../logic/words.js";
import { AddressMap } from "./address_map.js";
import { CardList } from "./card_list.js";
import { Later } from "./later.js";
import { NodePanel } from "./node_panel.js";
import { Empty, Notice } from "./notices.js";
import { SubnetBadges, SubnetCard } from "./subnet_card.js";
import { NoHistory, Usage } from "./usage.js";
import { UtilizationMap } from "./utilization_map.js";

const LARGEST_MAP = 2 ** 18;

/** In trouble first: starved, full, exhausted, then by how full they are. */
function inOrder(subnets) {
  const rank = (subnet) => (subnet.starved ? 8 : 0) + (subnet.full ? 4 : 0) + (subnet.exhausted ? 2 : 0);
  const share = (subnet) => (subnet.capacity ? subnet.reserved / subnet.capacity : 0);
  return [...subnets.values()].sort((a, b) => rank(b) - rank(a) || share(b) - share(a) || (a.name < b.name ? -1 : 1));
}

/** Of IPv6 the server numbers only blocks up to the last one in use, a thousand or so: they fit on a map. */
function isLarge(subnet) {
  return subnet.family === 4 && subnet.cidrs.reduce((sum, { cidr }) => sum + 2 ** (32 - Number(cidr.split("/")[1])), 0) > LARGEST_MAP;
}

function Figure({ title, value, hint, children }) {
  return html`<div class="figure" title=${hint}><dt>${title}</dt><dd>${value ?? children}</dd></div>`;
}

function Figures({ subnet }) {
  return html`
    <dl class="figures">
      <${Figure} title="Reserved" hint="held by nodes, primaries and quarantine included">${count(subnet.reserved)} <small>of ${count(subnet.capacity)} · ${percent(subnet.reserved, subnet.capacity)}</small><//>
      <${Figure} title="Free" value=${count(subnet.free)} hint="not reserved" />
      <${Figure} title="Pods" value=${count(subnet.pods)} hint="demand that nodes have stated" />
      <${Figure} title="Idle" value=${count(subnet.idle)} hint="held by nodes and not needed by pods" />
      <${Figure} title="Owed" value=${count(subnet.owed)} hint="asked for and not granted yet" />
      <${Figure} title="Quarantined" value=${count(subnet.quarantined)} hint="kept from use until it is certain that no pod has them" />
      <${Figure} title="Batch" hint="addresses that a node asks for at a time; the largest allowed is the top">${count(subnet.batch)} <small>of ${count(subnet.top)}, buffer ${count(subnet.buffer)}</small><//>
      ${subnet.thresholds && html`<${Figure} title="Thresholds" hint="exhausted above T, at ease again below t">${subnet.thresholds.lower} <small>t</small> · ${subnet.thresholds.upper} <small>T</small><//>`}
    </dl>`;
}

function SubnetDetail({ subnet, nodes, hasHistory, theme, route }) {
  const TheMap = isLarge(subnet) ? UtilizationMap : AddressMap;
  // Other ranges move all blocks: another map.
  const ranges = subnet.cidrs.map(({ cidr }) => cidr).join(" ");
  const onNode = (node) => {
    location.hash = routeTo({ tab: "subnets", name: subnet.name, node });
  };
  return html`
    <article class="subnet-detail" data-detail=${subnet.name} aria-labelledby="subnet-title">
      <div class="detail-head">
        <h2 id="subnet-title">${subnet.name}</h2>
        <span class="badges"><${SubnetBadges} subnet=${subnet} /></span>
        <span class="mono quiet">${subnet.cidrs.map(({ cidr, gateway, draining }) => `${cidr}${gateway ? ` (gateway ${gateway})` : ""}${draining ? ", draining" : ""}`).join(" · ")}</span>
      </div>
      <${Figures} subnet=${subnet} />
      ${subnet.reason && html`<p class="reason">${subnet.reason}</p>`}
      <section class="panel" aria-label="Use over time">
        ${hasHistory ? html`<${Later}><${Usage} key=${subnet.name} subnet=${subnet} theme=${theme} /><//>` : html`<${NoHistory} />`}
      </section>
      <section class="panel" aria-labelledby="map-title">
        <h3 id="map-title">Addresses</h3>
        <${Later}><${TheMap} key=${`${subnet.name} ${ranges}`} subnet=${subnet.name} nodes=${nodes} theme=${theme} node=${route.node} onNode=${onNode} /><//>
      </section>
    </article>`;
}

export function Subnets({ cluster, route, theme }) {
  const subnets = inOrder(cluster.subnets);
  if (!subnets.length && route.name === null) {
    return html`<${Empty} title="No subnet yet">
      <p>A subnet is shown as soon as a node of this cluster asks for addresses in it. Add one at the allocator:</p>
      <pre>podtide subnet add NETWORK NAME CIDR --allocator ADDRESS</pre>
      <p class="quiet">The page follows by itself.</p><//>`;
  }
  const chosen = route.name === null ? subnets[0] : cluster.subnets.get(route.name);
  return html`
    <div class="with-list ${route.node ? "with-panel" : ""}">
      <${Later}><${CardList} label="Subnets" chosen=${chosen?.name}>
        ${subnets.map((subnet) => html`<${SubnetCard} key=${subnet.name} subnet=${subnet} chosen=${subnet === chosen} />`)}
      <//><//>
      ${chosen
        ? html`<${Later}><${SubnetDetail} subnet=${chosen} nodes=${cluster.nodes} hasHistory=${cluster.cluster.hasAllocator} theme=${theme} route=${route} /><//>`
        : html`<div class="subnet-detail"><${Notice} kind="problem">Subnet ${route.name} is not there (any more). It was removed, or the name is misspelled. Choose another one.<//></div>`}
      ${route.node && html`<${NodePanel} name=${route.node} cluster=${cluster} closeTo=${routeTo({ tab: "subnets", name: route.name })} />`}
    </div>`;
}
