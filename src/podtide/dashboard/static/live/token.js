// The token that a server may demand. It comes with the address (`#token=…`) or from the form, is kept for this
// browser tab only, and is taken out of the address bar, so that it is not copied along with a link.

import { tokenIn } from "../logic/routes.js";

const KEY = "podtide.token";
let token = null;

export function readToken() {
  const given = tokenIn(location.hash);
  if (given !== null) {
    history.replaceState(null, "", location.pathname + location.search);
    setToken(given);
    return;
  }
  try {
    token = sessionStorage.getItem(KEY);
  } catch {
    token = null; // storage may be forbidden: then the token lives as long as the page
  }
}

export function setToken(value) {
  token = value;
  try {
    sessionStorage.setItem(KEY, value);
  } catch {
    // see above
  }
}

export function hasToken() {
  return token !== null;
}

/** @returns {Record<string, string>} */
export function authorization() {
  return token === null ? {} : { Authorization: `Bearer ${token}` };
}
