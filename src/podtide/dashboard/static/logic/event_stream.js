// Server-sent events, read from text as it arrives. EventSource cannot send an Authorization header, so the page
// reads the stream by fetch and parses it here.

/** @typedef {{id: string|null, event: string, data: string}} StreamEvent */

export class EventStreamParser {
  #rest = "";
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
    let buffer = this.#rest + text;
    // A lone CR at the end may be the first half of CR LF: wait for what follows.
    let held = "";
    if (buffer.endsWith("\r")) {
      held = "\r";
      buffer = buffer.slice(0, -1);
    }
    const lines = buffer.split(/\r\n|\n|\r/);
    this.#rest = lines.pop() + held;
    for (const line of lines) {
      if (line === "") {
        if (this.#data.length) events.push({ id: this.#id, event: this.#event || "message", data: this.#data.join("\n") });
        this.#event = "";
        this.#data = [];
      } else {
        this.#field(line);
      }
    }
    return events;
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
