// Questions to the server. Every failure becomes a sentence for people.

import { authorization } from "./token.js";

export class ApiError extends Error {
  /** @param {number} status 0: no answer at all */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let onUnauthorized = () => {};
let serverAhead = 0;

/** @param {() => void} listener called when the server demands a token, or another one */
export function whenUnauthorized(listener) {
  onUnauthorized = listener;
}

/** The server's time in milliseconds, by the Date of its last answer: times in answers are by its clock. */
export function serverNow() {
  return Date.now() + serverAhead;
}

/** @param {Response} response */
export function noteServerTime(response) {
  const date = Date.parse(response.headers.get("Date") ?? "");
  // Date has whole seconds: smaller differences are none.
  if (Number.isFinite(date)) serverAhead = Math.abs(date - Date.now()) > 1500 ? date - Date.now() : 0;
}

/** The sentence that the server gives for an error, or one of ours. */
export async function errorSentence(response) {
  try {
    const body = await response.json();
    if (typeof body.error === "string") return body.error;
  } catch {
    // not JSON: a proxy's page, for one
  }
  return `The server answered with status ${response.status}.`;
}

/**
 * @param {string} path relative to the page, which may be served below a prefix
 * @param {AbortSignal} [signal]
 */
export async function ask(path, signal) {
  let response;
  try {
    response = await fetch(path, { headers: authorization(), signal, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The server does not answer.");
  }
  noteServerTime(response);
  if (response.ok) return response.json();
  if (response.status === 401) onUnauthorized();
  throw new ApiError(response.status, await errorSentence(response));
}

/** @param {string} name */
export const segment = (name) => encodeURIComponent(name);
