// What a map shows: state and owner of every address, filled from answers of the server piece by piece. Each answer
// has its own list of nodes; here every node has one number for the whole map.

import { BLOCK } from "./geometry.js";
import { addressAt, bytesOf, wordsOf } from "../logic/addresses.js";
import { IDLE, ON_POD, scaleStep, STATES } from "./states.js";

const STATE_COUNT = STATES.length;

export class MapContents {
  /**
   * @param {number} blocks
   * @param {number} first the server's number of the first block: not 0 where a part of a subnet is looked at
   */
  constructor(blocks, first = 0) {
    this.blocks = blocks;
    this.first = first;
    this.cells = new Uint8Array(blocks * BLOCK);
    this.owners = new Uint32Array(blocks * BLOCK);
    /** @type {(string|undefined)[]} address of the first cell of each block */
    this.bases = new Array(blocks);
    /** @type {(string|null)[]} index is the node's number; 0 is nobody's */
    this.nodes = [null];
    this.numbers = new Map();
    this.pods = "all";
    /** How many addresses are in each state; blocks that are not loaded count as outside. */
    this.totals = new Uint32Array(STATE_COUNT);
    this.totals[0] = blocks * BLOCK;
  }

  /** @param {string} name */
  numberOf(name) {
    let number = this.numbers.get(name);
    if (number === undefined) {
      number = this.nodes.push(name) - 1;
      this.numbers.set(name, number);
    }
    return number;
  }

  /**
   * Takes an answer of …/map and returns the blocks whose look changed.
   * @param {object} answer
   * @returns {number[]}
   */
  take(answer) {
    const cells = bytesOf(answer.cells);
    const words = wordsOf(answer.owners);
    const numbers = [0, ...answer.nodes.map((name) => this.numberOf(name))];
    this.pods = answer.pods;
    const changed = [];
    for (let i = 0; i < answer.bases.length; i++) {
      const block = answer.first + i - this.first;
      if (block < 0 || block >= this.blocks) continue;
      const isNew = this.bases[block] === undefined;
      this.bases[block] = answer.bases[i];
      if (this.#takeBlock(block * BLOCK, cells, words, i * BLOCK, numbers) || isNew) changed.push(block);
    }
    return changed;
  }

  /** @returns {boolean} whether any of its addresses is another than before */
  #takeBlock(to, cells, words, from, numbers) {
    let differs = false;
    for (let index = 0; index < BLOCK; index++) {
      const owner = numbers[words[from + index]] ?? 0;
      const state = cells[from + index];
      if (this.cells[to + index] === state && this.owners[to + index] === owner) continue;
      this.#put(to + index, state);
      this.owners[to + index] = owner;
      differs = true;
    }
    return differs;
  }

  #put(at, state) {
    this.totals[this.cells[at]]--;
    this.totals[state]++;
    this.cells[at] = state;
  }

  /**
   * In large clusters the server colours no pods. Those of the node looked at are known from its own answer.
   * @param {string} node
   * @param {{address: string, pod: string|null}[]} addresses
   * @returns {number[]} blocks whose look changed
   */
  takePods(node, addresses) {
    const owner = this.numbers.get(node);
    const onPod = new Set(addresses.filter((entry) => entry.pod).map((entry) => entry.address));
    const changed = new Set();
    if (owner === undefined || !onPod.size) return [];
    for (const at of this.#heldBy(owner)) {
      if (this.cells[at] !== IDLE) continue;
      const block = Math.floor(at / BLOCK);
      if (!onPod.has(addressAt(this.bases[block], at % BLOCK))) continue;
      this.#put(at, ON_POD);
      changed.add(block);
    }
    return [...changed];
  }

  /** @returns {{address: string, state: number, node: string|null}|null} null: not loaded, or outside the subnet */
  at({ block, index }) {
    const base = this.bases[block];
    const state = this.cells[block * BLOCK + index];
    if (base === undefined || state === 0) return null;
    return { address: addressAt(base, index), state, node: this.nodes[this.owners[block * BLOCK + index]] };
  }

  /** How many addresses are in each state: of all, or of a node. */
  counts(node = null) {
    if (node === null) return this.totals.slice();
    const counts = new Uint32Array(STATE_COUNT);
    const owner = this.numbers.get(node);
    if (owner !== undefined) for (const at of this.#heldBy(owner)) counts[this.cells[at]]++;
    return counts;
  }

  /** The places of a node's addresses. The array's own search is native: a /16 takes it microseconds. */
  *#heldBy(owner) {
    for (let at = this.owners.indexOf(owner); at >= 0; at = this.owners.indexOf(owner, at + 1)) yield at;
  }
}

/** Utilization per /24 as cells of a map of its own: a cell is a /24, a row a /16. */
export class UtilizationContents {
  /** @param {number} total number of /24s */
  constructor(total) {
    this.total = total;
    this.prefix = 24;
    this.blocks = Math.ceil(total / BLOCK);
    this.cells = new Uint8Array(this.blocks * BLOCK);
    this.owners = new Uint32Array(this.blocks * BLOCK);
    this.used = new Uint16Array(total);
    this.bases = new Array(total);
  }

  /** @returns {number[]} blocks whose look changed */
  take(answer) {
    const changed = new Set();
    this.prefix = answer.prefix;
    answer.used.forEach((used, i) => {
      const at = answer.first + i;
      if (at >= this.total) return;
      this.used[at] = used;
      this.bases[at] = answer.bases[i];
      // State 0 is "outside", so a /24 in which nothing is used must be told apart from one that is not there.
      const step = scaleStep(used) + 1;
      if (this.cells[at] !== step) changed.add(Math.floor(at / BLOCK));
      this.cells[at] = step;
    });
    return [...changed];
  }

  at({ block, index }) {
    const at = block * BLOCK + index;
    return at < this.total && this.bases[at] !== undefined ? { base: this.bases[at], used: this.used[at], at } : null;
  }
}
