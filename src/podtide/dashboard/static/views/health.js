// Whether podtide itself is well: leader, API server, allocator, and agents out of contact.

import { html } from "../html.js";
import { serverNow } from "../live/api.js";
import { routeTo } from "../logic/routes.js";
import { age, clock, count, counted } from "../logic/words.js";
import { Badge, Loading } from "./notices.js";

/** @param {{title: string, ok: boolean|null, words: [string, string, string], message: string}} props words: good, bad, unknown */
function Part({ name, title, ok, words, message, children }) {
  return html`
    <section class="card health-card" data-health=${name} data-ok=${String(ok)} aria-label=${title}>
      <div class="card-head"><h3>${title}</h3><${Badge} kind=${ok === null ? "plain" : ok ? "good" : "bad"}>${ok === null ? words[2] : ok ? words[0] : words[1]}<//></div>
      ${message && html`<p>${message}</p>`}
      ${children}
    </section>`;
}

function Fact({ title, children }) {
  return html`<div><dt>${title}</dt><dd>${children}</dd></div>`;
}

export function Health({ cluster }) {
  const { health } = cluster;
  if (!health) return html`<${Loading} what="health" />`;
  const { leader, allocator, api, agents } = health;
  const now = serverNow();
  return html`
    <section aria-labelledby="health-title">
      <div class="panel-head"><h2 id="health-title">Health</h2><span class="quiet">podtide ${cluster.cluster.server}, this server runs since ${clock(cluster.cluster.startedAt, now)}</span></div>
      <div class="health-cards">
        <${Part} name="leader" title="Leader" ok=${leader.ok} words=${["leads", "none leads", "unknown"]} message=${leader.message}>
          <dl class="facts"><${Fact} title="Controller">${leader.holder ?? "–"}<//><${Fact} title="Leads for">${age(leader.since, now)}<//><${Fact} title="Renewed">${leader.renewed ? `${age(leader.renewed, now)} ago` : "–"}<//></dl>
        <//>
        <${Part} name="allocator" title="Allocator" ok=${allocator.ok} words=${["answers", "away", "not known here"]} message=${allocator.message} />
        <${Part} name="api" title="API server" ok=${api.ok} words=${["answers", "away", "unknown"]} message=${api.message} />
        <${Part} name="agents" title="Agents" ok=${agents.silentCount === 0} words=${["all in contact", `${count(agents.silentCount)} out of contact`, ""]} message=${`${counted(agents.total, "agent")} in all.`} />
      </div>
      ${agents.silentCount > 0 && html`
        <section class="panel" aria-labelledby="silent-title"><h3 id="silent-title">Agents out of contact</h3>
          <div class="table-frame" tabindex="0" role="group" aria-label="Table of agents out of contact"><table class="wide" data-silent>
            <thead><tr><th scope="col">Node</th><th scope="col">For</th><th scope="col">What is known</th></tr></thead>
            <tbody>${agents.silent.map((agent) => html`<tr key=${agent.node}><th scope="row"><a href=${routeTo({ tab: "nodes", node: agent.node })}>${agent.node}</a></th><td class="nowrap">${age(agent.since, now)}</td><td>${agent.message}</td></tr>`)}</tbody>
          </table></div>
          ${agents.silentCount > agents.silent.length && html`<p class="quiet">${count(agents.silentCount - agents.silent.length)} more are not listed.</p>`}
        </section>`}
    </section>`;
}
