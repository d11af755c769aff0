// The page: header, tabs, and the view that the address bar names.

import { html, render, useEffect, useState } from "./html.js";
import { redraw, start, view } from "./live/store.js";
import { currentTheme, onTheme } from "./theme.js";
import { Decisions } from "./views/decisions.js";
import { Header } from "./views/header.js";
import { Health } from "./views/health.js";
import { Networks } from "./views/networks.js";
import { Nodes } from "./views/nodes.js";
import { Notice } from "./views/notices.js";
import { Subnets } from "./views/subnets.js";
import { TokenForm } from "./views/token_form.js";
import { Waiting } from "./views/waiting.js";

const VIEWS = { subnets: Subnets, nodes: Nodes, waiting: Waiting, decisions: Decisions, networks: Networks, health: Health };

function View(props) {
  useEffect(() => {
    performance.mark("cluster-shown"); // for benchmarks
  }, []);
  const Chosen = VIEWS[props.route.tab];
  return html`<${Chosen} ...${props} />`;
}

function Main({ view: { cluster, connection, why, route }, theme }) {
  if (connection === "token") return html`<${TokenForm} why=${why} />`;
  if (cluster.cluster === null) {
    return html`<div class="first-load"><p class="loading" role="status">Loading the cluster …</p>
      ${why && html`<${Notice} kind="problem">${why} The page tries again by itself.<//>`}</div>`;
  }
  return html`<${View} cluster=${cluster} route=${route} theme=${theme} />`;
}

/** Ages are written anew every second, and nothing else is. */
function useSeconds() {
  const [, setSecond] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && setSecond((last) => last + 1), 1000);
    return () => clearInterval(timer);
  }, []);
}

function HeaderWithAge(props) {
  useSeconds();
  return html`<${Header} ...${props} />`;
}

function Page({ current }) {
  return html`
    <${HeaderWithAge} view=${current} />
    <main id="main" tabindex="-1"><${Main} view=${current} theme=${currentTheme()} /></main>`;
}

// The fragment is the view: a plain link to the content would leave it.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});

const root = document.getElementById("root");
start(() => {
  document.title = view.cluster.cluster ? `${view.cluster.cluster.name} · podtide` : "podtide";
  render(html`<${Page} current=${{ ...view }} />`, root);
});
onTheme(redraw);
