// Short texts that stand where there is nothing else to show, or above what there is.

import { html } from "../html.js";

export function Loading({ what }) {
  return html`<p class="loading" role="status">Loading ${what} …</p>`;
}

/** @param {{kind: "problem"|"note", children: any}} props */
export function Notice({ kind, children }) {
  return html`<p class="notice ${kind}" role=${kind === "problem" ? "alert" : "note"}><span class="notice-mark" aria-hidden="true">${kind === "problem" ? "!" : "i"}</span><span>${children}</span></p>`;
}

/** Nothing there yet, and what to do. */
export function Empty({ title, children }) {
  return html`<div class="empty"><h2>${title}</h2>${children}</div>`;
}

/** A state in words, coloured as well. @param {{kind: "good"|"warn"|"bad"|"plain", title?: string}} props */
export function Badge({ kind, title, children }) {
  return html`<span class="badge ${kind}" title=${title}>${children}</span>`;
}
