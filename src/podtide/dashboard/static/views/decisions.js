// What podtide decided, as it happens, newest first. Each decision opens to its arithmetic.

import { html, useMemo, useState } from "../html.js";
import { serverNow } from "../live/api.js";
import { routeTo } from "../logic/routes.js";
import { clock, count } from "../logic/words.js";
import { Arithmetic, hasArithmetic } from "./arithmetic.js";
import { Empty } from "./notices.js";

const DRAWN = 200; // the newest that match

const KINDS = { exhausted: "warn", starved: "bad", batch: "strong" };

/** Whom a decision is about: what to show, and where it leads. */
function subjectOf(subject) {
  const [kind, ...rest] = subject.split("/");
  const name = rest.join("/");
  if (kind === "node") return { name, title: name, link: routeTo({ tab: "nodes", node: name }) };
  if (kind === "subnet") return { name, title: `subnet ${name}`, link: routeTo({ tab: "subnets", name }) };
  return { name: subject, title: subject, link: null };
}

function Decision({ decision, open, onToggle }) {
  const { name, title, link } = subjectOf(decision.subject);
  // The name stands before the sentence already.
  const text = decision.text.startsWith(`${name} `) ? decision.text.slice(name.length + 1) : decision.text;
  const content = `decision-${decision.id}`;
  return html`
    <li class="decision ${open ? "open" : ""}" data-decision=${decision.id} data-kind=${decision.kind}>
      <div class="decision-line">
        ${!hasArithmetic(decision) ? html`<span class="opener"></span>` : html`<button type="button" class="opener" aria-expanded=${String(open)} aria-controls=${content} aria-label=${`Arithmetic of: ${decision.text}`} onClick=${onToggle}><span aria-hidden="true">${open ? "▾" : "▸"}</span></button>`}
        <time class="mono quiet" datetime=${decision.time}>${clock(decision.time, serverNow())}</time>
        <span class="badge ${KINDS[decision.kind] ?? "plain"}">${decision.kind}</span>
        ${link ? html`<a class="decision-subject" href=${link}>${title}</a>` : html`<span class="decision-subject">${title}</span>`}
        <span class="decision-text">${text}</span>
      </div>
      <div id=${content} hidden=${!open}>${open && html`<${Arithmetic} decision=${decision} />`}</div>
    </li>`;
}

export function Decisions({ cluster }) {
  const [paused, setPaused] = useState(null);
  const [text, setText] = useState("");
  const [open, setOpen] = useState(() => new Set());
  const source = paused ?? cluster.decisions;
  const shown = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const matching = source.filter((decision) => words.every((word) => `${decision.subject} ${decision.kind} ${decision.text}`.toLowerCase().includes(word)));
    return matching.slice(-DRAWN).reverse();
  }, [source, text]);
  const later = paused && cluster.decisions.length ? cluster.decisions.filter((decision) => !paused.length || decision.id > paused.at(-1).id).length : 0;
  const toggle = (id) => () => {
    const next = new Set(open);
    if (!next.delete(id)) next.add(id);
    setOpen(next);
  };
  return html`
    <section class="reading" aria-labelledby="decisions-title">
      <div class="panel-head">
        <h2 id="decisions-title">Decisions</h2>
        <label class="unseen" for="decision-filter">Filter decisions by node, subnet or kind</label>
        <input id="decision-filter" type="search" placeholder="Filter: node, subnet, kind" value=${text} onInput=${(event) => setText(event.target.value)} />
        <button type="button" class="toggle" data-pause aria-pressed=${String(paused !== null)} onClick=${() => setPaused(paused === null ? cluster.decisions : null)}>${paused === null ? "Pause" : "Go on"}</button>
        <span class="quiet" role="status">${paused === null ? "live, newest first" : `paused${later ? `, ${count(later)} newer` : ""}`}</span>
      </div>
      ${source.length === 0
        ? html`<${Empty} title="No decision yet"><p>Decisions are listed as they are made, from the moment this server started to watch.</p><//>`
        : shown.length === 0
          ? html`<p class="empty-line">No decision matches "${text}".</p>`
          : html`<ol class="decisions">${shown.map((decision) => html`<${Decision} key=${decision.id} decision=${decision} open=${open.has(decision.id)} onToggle=${toggle(decision.id)} />`)}</ol>`}
    </section>`;
}
