// Cards of which one is chosen, beside what it shows; on a narrow screen they scroll sideways above it.

import { html, useEffect, useRef } from "../html.js";

/** @param {{label: string, chosen: string|undefined, children: any}} props */
export function CardList({ label, chosen, children }) {
  const list = useRef(null);
  useEffect(() => list.current.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [chosen]);
  return html`<section class="list" aria-label=${label} ref=${list}>${children}</section>`;
}
