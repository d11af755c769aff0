// Pods that wait for an address, and what would help. Looked up while this tab is open, because the server does not
// watch pods.

import { html } from "../html.js";
import { serverNow } from "../live/api.js";
import { useResource } from "../live/resource.js";
import { routeTo } from "../logic/routes.js";
import { age, counted } from "../logic/words.js";
import { Empty, Loading, Notice } from "./notices.js";

export function Waiting() {
  const { data, error } = useResource("api/waiting", 5);
  return html`
    <section class="reading" aria-labelledby="waiting-title">
      <div class="panel-head"><h2 id="waiting-title">Waiting pods</h2>
        <span class="quiet" role="status">${data ? `${counted(data.pods.length, "pod")}${data.truncated ? ", more are not listed" : ""}, looked up every 5 s` : ""}</span></div>
      ${error && html`<${Notice} kind="problem">${error.message} The page asks again every 5 s.<//>`}
      ${!data && !error && html`<${Loading} what="the pods that wait" />`}
      ${data && data.pods.length === 0 && html`<${Empty} title="No pod waits"><p>Every pod that needs an address has one.</p><//>`}
      ${data && data.pods.length > 0 && html`
        <div class="table-frame" tabindex="0" role="group" aria-label="Table of waiting pods"><table class="wide" data-waiting>
          <thead><tr><th scope="col">Pod</th><th scope="col">Node</th><th scope="col">Waits</th><th scope="col">Reason</th><th scope="col">Why, and what would help</th></tr></thead>
          <tbody>${data.pods.map((pod) => html`<tr key=${pod.pod} data-pod=${pod.pod}><th scope="row" class="nowrap">${pod.pod}</th>
            <td class="nowrap">${pod.node ? html`<a href=${routeTo({ tab: "nodes", node: pod.node })}>${pod.node}</a>` : "–"}</td>
            <td class="nowrap">${age(pod.since, serverNow())}</td><td class="nowrap"><span class="badge warn">${pod.reason}</span></td><td>${pod.message}</td></tr>`)}</tbody>
        </table></div>`}
    </section>`;
}
