// Fetches a map: all of it once, later only what the stream says has changed, gathered for a moment and in few
// requests.

import { ask, segment } from "../live/api.js";
import { MapContents, UtilizationContents } from "./contents.js";
import { blockRanges } from "./geometry.js";

const GATHER = 300;
const RETRY = 5000;

/**
 * The two kinds of maps: where they are asked for, how much at once, and what holds the answers. An answer is taken in
 * at one go, between two frames: so much of a /16 takes a millisecond.
 */
const KINDS = {
  map: { most: 32, contents: (answer) => new MapContents(answer.blocks) },
  utilization: { most: 4096, contents: (answer) => new UtilizationContents(answer.blocks) },
};

export class MapLoader {
  #kind;
  #path;
  #only;
  #listener;
  #contents = null;
  #total = 0;
  #dirty = new Set();
  #timer = null;
  #busy = false;
  #abort = new AbortController();

  /**
   * @param {string} subnet
   * @param {"map"|"utilization"} kind
   * @param {number|null} only a single block, or all
   * @param {{onContents: (contents: object) => void, onBlocks: (blocks: number[]) => void, onError: (error: Error|null) => void}} listener
   */
  constructor(subnet, kind, only, listener) {
    this.#kind = KINDS[kind];
    this.#path = `api/subnets/${segment(subnet)}/${kind}`;
    this.#only = only;
    this.#listener = listener;
    this.#load();
  }

  stop() {
    this.#abort.abort();
    clearTimeout(this.#timer);
  }

  /** @param {number[]|null} blocks null: all */
  changed(blocks) {
    if (blocks === null) this.#contents = null;
    else if (this.#only === null) blocks.forEach((block) => this.#dirty.add(block));
    else if (blocks.includes(this.#only)) this.#dirty.add(this.#only);
    else return;
    this.#plan(GATHER);
  }

  #plan(wait) {
    if (this.#timer === null && !this.#busy) {
      this.#timer = setTimeout(() => {
        this.#timer = null;
        this.#load();
      }, wait);
    }
  }

  async #load() {
    this.#busy = true;
    let wait = GATHER;
    try {
      if (this.#contents === null) await this.#loadAll();
      const ranges = blockRanges(this.#dirty, this.#kind.most);
      this.#dirty.clear();
      for (const range of ranges) {
        const answer = await this.#get(range);
        if (answer.blocks !== this.#total) this.changed(null); // it grew: another map
        if (this.#contents === null) break;
        this.#listener.onBlocks(this.#contents.take(answer));
      }
      this.#listener.onError(null);
    } catch (error) {
      if (this.#abort.signal.aborted) return;
      this.#listener.onError(error);
      this.#contents = null; // what was missed is not known: all of it again
      wait = RETRY;
    } finally {
      this.#busy = false;
    }
    if (this.#dirty.size || this.#contents === null) this.#plan(wait);
  }

  async #loadAll() {
    this.#dirty.clear();
    const first = await this.#get({ from: this.#only ?? 0, count: this.#only === null ? this.#kind.most : 1 });
    const contents = this.#only === null ? this.#kind.contents(first) : new MapContents(1, this.#only);
    contents.take(first);
    this.#contents = contents;
    this.#total = first.blocks;
    this.#listener.onContents(contents);
    if (this.#only !== null) return;
    for (let from = this.#kind.most; from < first.blocks; from += this.#kind.most) {
      this.#listener.onBlocks(contents.take(await this.#get({ from, count: Math.min(this.#kind.most, first.blocks - from) })));
    }
  }

  #get({ from, count }) {
    return ask(`${this.#path}?from=${from}&count=${count}`, this.#abort.signal);
  }
}
