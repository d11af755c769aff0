// The live stream: opened, read, and opened again after a drop, from where it broke off. A browser that slept, or a
// network that swallows packets, shows no error: no byte for 45 s counts as a drop as well.

import { EventStreamParser } from "../logic/event_stream.js";
import { errorSentence, noteServerTime } from "./api.js";
import { authorization } from "./token.js";

const SILENCE = 45_000;
const SUSPICIOUS = 20_000; // the server sends something every 15 s
const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;

/**
 * @typedef {object} Listener
 * @property {(event: string, data: object) => void} onEvent
 * @property {() => void} onByte
 * @property {() => void} onOpen
 * @property {(why: string) => void} onLost
 * @property {(why: string) => void} onUnauthorized
 */

export class Connection {
  #listener;
  #lastId = null;
  #wait = FIRST_WAIT;
  #lastByte = Date.now();
  #attempt = null;
  #timer = null;
  #stopped = true;

  /** @param {Listener} listener */
  constructor(listener) {
    this.#listener = listener;
    setInterval(() => this.#check(SILENCE), 5000);
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "visible") this.#awake();
    });
    addEventListener("online", () => this.#awake());
  }

  start() {
    this.#stopped = false;
    this.#wait = FIRST_WAIT;
    this.#open();
  }

  stop() {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#attempt?.abort();
  }

  /** After sleep, do not wait for the timers: they stood still too. */
  #awake() {
    if (this.#stopped) return;
    if (this.#timer !== null) {
      this.#wait = FIRST_WAIT;
      this.#open();
    } else {
      this.#check(SUSPICIOUS);
    }
  }

  #check(silence) {
    if (!this.#stopped && this.#timer === null && Date.now() - this.#lastByte > silence) this.#attempt?.abort("silent");
  }

  async #open() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#attempt?.abort();
    const attempt = new AbortController();
    this.#attempt = attempt;
    this.#lastByte = Date.now();
    let why = "The server ended the connection.";
    try {
      why = (await this.#read(attempt.signal)) ?? why;
    } catch {
      why = attempt.signal.reason === "silent" ? "Nothing was received for a while." : "The server does not answer.";
    }
    if (this.#stopped || attempt !== this.#attempt) return;
    this.#listener.onLost(why);
    // A little chance, so that a hundred open pages do not all come back in the same instant.
    this.#timer = setTimeout(() => this.#open(), this.#wait * (0.75 + Math.random() / 2));
    this.#wait = Math.min(LONGEST_WAIT, this.#wait * 2);
  }

  /** @returns {Promise<string|undefined>} why it ended, if the server said so */
  async #read(signal) {
    const headers = { Accept: "text/event-stream", ...authorization() };
    if (this.#lastId !== null) headers["Last-Event-ID"] = this.#lastId;
    const response = await fetch("api/stream", { headers, signal, cache: "no-store" });
    noteServerTime(response);
    if (response.status === 401) {
      const why = await errorSentence(response); // before stop, which ends this very answer
      this.stop();
      this.#listener.onUnauthorized(why);
      return undefined;
    }
    if (!response.ok) return errorSentence(response);
    this.#listener.onOpen();
    const parser = new EventStreamParser();
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return undefined;
      this.#lastByte = Date.now();
      this.#wait = FIRST_WAIT;
      this.#listener.onByte();
      for (const { id, event, data } of parser.feed(decoder.decode(value, { stream: true }))) {
        this.#listener.onEvent(event, JSON.parse(data));
        // Only after it is applied: what failed on the way is asked for again.
        if (id !== null) this.#lastId = id;
      }
    }
  }
}
