// How a number of addresses is used, as a bar of parts with marks on it. The numbers stand beside it in words: the
// bar itself is hidden from screen readers, or named by the one who places it.

import { html } from "../html.js";

/**
 * @param {object} props
 * @param {{key: string, value: number}[]} props.parts from left to right
 * @param {number} props.whole
 * @param {{at: number, title: string, letter: string}[]} [props.marks] shares of the whole
 * @param {string} props.label
 */
export function UseBar({ parts, whole, marks = [], label }) {
  return html`
    <div class="use-bar ${marks.length ? "marked" : ""}" role="img" aria-label=${label} title=${label}>
      <div class="use-track">
        ${whole > 0 && parts.filter((part) => part.value > 0).map((part) => html`
          <span key=${part.key} class="use-part ${part.key}" style=${{ width: `${(100 * part.value) / whole}%` }}></span>`)}
      </div>
      ${marks.map((mark) => html`<span key=${mark.letter} class="use-mark" style=${{ left: `${100 * mark.at}%` }}><i></i>${mark.letter}</span>`)}
    </div>`;
}
