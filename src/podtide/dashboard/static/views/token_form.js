// Asked for where the server demands a token and the page has none, or a wrong one.

import { html, useRef } from "../html.js";
import { tryToken } from "../live/store.js";
import { Notice } from "./notices.js";

export function TokenForm({ why }) {
  const input = useRef(null);
  const send = (event) => {
    event.preventDefault();
    if (input.current.value.trim()) tryToken(input.current.value);
  };
  return html`
    <form class="token-form" onSubmit=${send} data-token-form>
      <h2>This page is behind a token</h2>
      ${why && html`<${Notice} kind="problem">${why}<//>`}
      <p id="token-hint">The server printed the token, or the address with it, when it started. It is kept for this browser tab only.</p>
      <label for="token">Token</label>
      <div class="field-line">
        <input id="token" ref=${input} type="password" autocomplete="off" spellcheck="false" aria-describedby="token-hint" required autofocus />
        <button type="submit" class="primary">Open</button>
      </div>
    </form>`;
}
