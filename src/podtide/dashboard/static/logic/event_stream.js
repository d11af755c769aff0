// Server-sent events, read from text as it arrives. EventSource cannot send an Authorization header, so the page
// reads the stream by fetch and parses it here.

/** @typedef {{id: string|null, event: string, data: string}} StreamEvent */

export class EventStreamParser {
  #begun = []; // pieces of a line that has not ended: a snapshot is one line of a megabyte, in many pieces
  #event = "";
  #data = [];
  #id = null;

  /**
   * Takes the next piece of text, which may end anywhere, and returns the events that it completes.
   * @param {string} text
   * @returns {StreamEvent[]}
   */
  feed(text) {
    const events = [];
    if (this.#begun.at(-1) === "\r") text = this.#begun.pop() + text;
    // A lone CR at the end may be the first half of CR LF: wait for what follows.
    const end = text.endsWith("\r") ? text.length - 1 : text.length;
    const lines = text.slice(0, end).split(/\r\n|\n|\r/);
    const begun = lines.pop();
    for (const line of lines) {
      this.#line(this.#begun.length ? this.#begun.join("") + line : line, events);
      this.#begun = [];
    }
    if (begun) this.#begun.push(begun);
    if (end < text.length) this.#begun.push("\r");
    return events;
  }

  #line(line, events) {
    if (line !== "") {
      this.#field(line);
      return;
    }
    if (this.#data.length) events.push({ id: this.#id, event: this.#event || "message", data: this.#data.join("\n") });
    this.#event = "";
    this.#data = [];
  }

  #field(line) {
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment, which only shows that the server lives
    const name = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#event = value;
    else if (name === "id") this.#id = value;
  }
}
