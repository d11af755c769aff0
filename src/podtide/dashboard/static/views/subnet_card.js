// A subnet in short: how full it is, what is in force, and what is wrong.

import { html } from "../html.js";
import { routeTo } from "../logic/routes.js";
import { count, counted, percent } from "../logic/words.js";
import { Badge } from "./notices.js";
import { UseBar } from "./use_bar.js";

/** Reserved addresses by use; what is not known to be a pod's or idle is one part. */
function partsOf(subnet) {
  const reserved = subnet.reserved ?? 0;
  const pods = Math.min(subnet.pods ?? 0, reserved);
  const idle = Math.min(subnet.idle ?? 0, reserved - pods);
  const quarantined = Math.min(subnet.quarantined ?? 0, reserved - pods - idle);
  return [
    { key: "pod", value: pods },
    { key: "idle", value: idle },
    { key: "other", value: reserved - pods - idle - quarantined },
    { key: "quarantined", value: quarantined },
  ];
}

export function SubnetBar({ subnet }) {
  const marks = subnet.thresholds
    ? [
        { at: subnet.thresholds.lower, letter: "t", title: "lower threshold" },
        { at: subnet.thresholds.upper, letter: "T", title: "upper threshold" },
      ]
    : [];
  const label = `${count(subnet.reserved)} of ${count(subnet.capacity)} addresses reserved${subnet.pods === null ? "" : `, ${count(subnet.pods)} for pods`}`;
  return html`<${UseBar} parts=${partsOf(subnet)} whole=${subnet.capacity ?? 0} marks=${marks} label=${label} />`;
}

export function SubnetBadges({ subnet }) {
  return html`
    ${subnet.starved && html`<${Badge} kind="bad" title="Nodes wait for addresses and none is left: nodes give back all they can">starved<//>`}
    ${subnet.exhausted && html`<${Badge} kind="warn" title="More is reserved than the upper threshold T allows: nodes hold less">exhausted<//>`}
    ${subnet.full && html`<${Badge} kind="bad" title="No address is free">full<//>`}
    ${subnet.owed > 0 && html`<${Badge} kind="warn" title="Asked for by nodes and not granted yet">owed ${count(subnet.owed)}<//>`}
    ${subnet.cidrs.some((cidr) => cidr.draining) && html`<${Badge} kind="plain" title="A CIDR of this subnet is being emptied">draining<//>`}
    ${subnet.reserved === null && html`<${Badge} kind="plain" title="Neither a ClusterSubnet nor an allocator tells how full it is">use not known<//>`}
    ${subnet.reserved !== null && !subnet.starved && !subnet.exhausted && !subnet.full && html`<${Badge} kind="good" title="Below the thresholds">at ease<//>`}`;
}

/** @param {{subnet: object, chosen: boolean}} props */
export function SubnetCard({ subnet, chosen }) {
  return html`
    <a class="card subnet-card" href=${routeTo({ tab: "subnets", name: subnet.name })} data-subnet=${subnet.name} aria-current=${chosen ? "true" : undefined}>
      <span class="card-head"><b class="card-title">${subnet.name}</b><span class="badges"><${SubnetBadges} subnet=${subnet} /></span></span>
      <span class="mono quiet card-cidrs">${subnet.cidrs.map((cidr) => cidr.cidr).join(", ")}</span>
      <${SubnetBar} subnet=${subnet} />
      <span class="card-figures">
        <span><b>${count(subnet.reserved)}</b> of ${count(subnet.capacity)} · ${percent(subnet.reserved, subnet.capacity)}</span>
        <span>batch <b>${count(subnet.batch)}</b>${subnet.top && subnet.top !== subnet.batch ? html` of ${count(subnet.top)}` : ""} · ${counted(subnet.nodes, "node")}</span>
      </span>
      ${subnet.runsOut?.message && html`<span class="card-note ${subnet.runsOut.status === "True" ? "bad-text" : "quiet"}">${subnet.runsOut.message}</span>`}
    </a>`;
}
