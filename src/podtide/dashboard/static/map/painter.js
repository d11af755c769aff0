// Draws a map on a canvas. Only blocks that changed are drawn, a few milliseconds' worth per frame, so that the page
// never stutters: a whole /16 takes a handful of frames, a change of a node's pool takes part of one.

import { BLOCK, blockTop } from "./geometry.js";
import { paintBlock } from "./block_pixels.js";

const BUDGET = 3; // milliseconds of script per frame
// Drawn in every frame, whatever the clock says: a fraction of a millisecond's work. On a busy machine the clock runs
// on while the page waits for a processor, and a large map would grow by a block per frame.
const LEAST_PIXELS = 1 << 17;

export class MapPainter {
  #canvas;
  #context;
  #scene = null;
  #image = null;
  #pixels = null;
  #dirty = new Set();
  #frame = null;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d", { alpha: true });
  }

  /**
   * Another map, size, palette or node to light up: all blocks are drawn anew.
   * @param {{contents: object, layout: object, palette: object, look: object}} scene
   */
  show(scene) {
    const { layout } = scene;
    this.#scene = scene;
    if (this.#canvas.width !== layout.width || this.#canvas.height !== layout.height) {
      this.#canvas.width = layout.width;
      this.#canvas.height = layout.height;
      this.#image = null;
    }
    if (this.#image === null || this.#image.height !== layout.rows * layout.cell) {
      this.#image = this.#context.createImageData(layout.width, layout.rows * layout.cell);
      this.#pixels = new Uint32Array(this.#image.data.buffer);
    }
    this.#dirty = new Set(Array(layout.blocks).keys());
    this.#plan();
  }

  /** @param {number[]} blocks that changed */
  touch(blocks) {
    for (const block of blocks) this.#dirty.add(block);
    if (blocks.length) this.#plan();
  }

  stop() {
    cancelAnimationFrame(this.#frame);
    this.#scene = null;
  }

  #plan() {
    this.#canvas.dataset.drawn = "false";
    this.#frame ??= requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.#frame = null;
    if (this.#scene === null) return;
    const start = performance.now();
    const { contents, layout, palette, look } = this.#scene;
    let pixels = 0;
    for (const block of this.#dirty) {
      this.#dirty.delete(block);
      const from = block * BLOCK;
      const cells = contents.cells.subarray(from, from + BLOCK);
      paintBlock(this.#pixels, layout, cells, contents.owners.subarray(from, from + BLOCK), palette, look);
      this.#context.putImageData(this.#image, 0, blockTop(layout, block));
      pixels += this.#pixels.length;
      if (pixels >= LEAST_PIXELS && performance.now() - start > BUDGET) break;
    }
    if (this.#dirty.size) this.#plan();
    else this.#canvas.dataset.drawn = "true";
  }
}
