// A decision's arithmetic: the formula with its numbers, and what each symbol stands for.

import { html } from "../html.js";

/** A grant, for one, follows from what there is: nothing is computed. */
export function hasArithmetic(decision) {
  return decision.formula !== "" || decision.terms.length > 0;
}

/** @param {{decision: {formula: string, terms: [string, string, string][], text: string}}} props */
export function Arithmetic({ decision }) {
  if (!hasArithmetic(decision)) return null;
  return html`
    <div class="arithmetic">
      ${decision.formula && html`<p class="formula mono">${decision.formula}</p>`}
      ${decision.terms.length > 0 && html`
        <table class="terms">
          <thead class="unseen"><tr><th scope="col">Symbol</th><th scope="col">Value</th><th scope="col">Meaning</th></tr></thead>
          <tbody>${decision.terms.map(([symbol, meaning, value]) => html`<tr key=${symbol + meaning}><th scope="row" class="mono">${symbol}</th><td class="mono number">${value}</td><td>${meaning}</td></tr>`)}</tbody>
        </table>`}
    </div>`;
}
