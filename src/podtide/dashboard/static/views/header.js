// The top of every view: which cluster, whether what is shown is live, and the tabs.

import { html, useEffect, useRef } from "../html.js";
import { redraw } from "../live/store.js";
import { routeTo } from "../logic/routes.js";
import { count, duration } from "../logic/words.js";
import { currentTheme, toggleTheme } from "../theme.js";
import { Later } from "./later.js";

const TITLES = { subnets: "Subnets", nodes: "Nodes", waiting: "Waiting pods", decisions: "Decisions", networks: "Networks", health: "Health" };

function ConnectionState({ view }) {
  const seconds = (Date.now() - view.receivedAt) / 1000;
  const texts = {
    loading: "connecting …",
    token: "token needed",
    live: "live",
    lost: `connection lost, trying again · data is ${duration(seconds)} old`,
  };
  return html`<span class="connection ${view.connection}" role="status" data-connection=${view.connection} title=${view.why || (view.connection === "live" ? `last heard from ${duration(seconds)} ago` : "")}>
    <span class="lamp" aria-hidden="true"></span>${texts[view.connection]}</span>`;
}

function ThemeToggle() {
  const dark = currentTheme() === "dark";
  const title = dark ? "Switch to light colours" : "Switch to dark colours";
  return html`<button type="button" class="icon-button" data-theme-toggle aria-label=${title} title=${title} onClick=${() => { toggleTheme(); redraw(); }}>
    <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d="M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Zm0 1.6v10.8a5.4 5.4 0 0 1 0-10.8Z" fill="currentColor"/></svg></button>`;
}

/** Numbers beside the tabs: what a person on call would look for. */
function numberFor(tab, cluster) {
  if (tab === "subnets") return { value: cluster.subnets.size, bad: false };
  if (tab === "nodes") return { value: cluster.nodes.size, bad: false };
  if (tab === "waiting") {
    let waiting = 0;
    for (const node of cluster.nodes.values()) waiting += node.waiting;
    return { value: waiting, bad: waiting > 0 };
  }
  if (tab === "health" && cluster.health) {
    const { leader, api, allocator, agents } = cluster.health;
    const problems = !leader.ok + !api.ok + (allocator.ok === false) + agents.silentCount;
    return problems ? { value: problems, bad: true } : null;
  }
  return null;
}

function Tabs({ view }) {
  const nav = useRef(null);
  // On a narrow screen the tabs scroll: the open one is in sight.
  useEffect(() => nav.current.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }), [view.route.tab]);
  return html`
    <nav aria-label="Views" ref=${nav}>
      ${Object.entries(TITLES).map(([tab, title]) => {
        const number = numberFor(tab, view.cluster);
        return html`<a key=${tab} href=${routeTo({ tab })} data-tab=${tab} aria-current=${view.route.tab === tab ? "page" : undefined}>${title}
          ${number && html`<span class="tab-number ${number.bad ? "bad" : ""}">${count(number.value)}</span>`}</a>`;
      })}
    </nav>`;
}

export function Header({ view }) {
  const { cluster } = view.cluster;
  return html`
    <header class="top">
      <div class="top-line">
        <h1><span class="wordmark" aria-hidden="true"></span><span class="product">podtide</span>${cluster && html`<span class="cluster-name" data-cluster>${cluster.name}</span>`}</h1>
        ${cluster?.demo && html`<span class="badge plain" title="All of it runs in one process: no Kubernetes needed">demo</span>`}
        <${ConnectionState} view=${view} />
        <${ThemeToggle} />
      </div>
      ${cluster && view.connection !== "token" && html`<${Later}><${Tabs} view=${view} /><//>`}
    </header>`;
}
