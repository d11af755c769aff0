// Where an address stands on the map. Blocks of 256 addresses are laid under each other in address order, each as
// rows that are read from left to right. A wide screen shows a large subnet with one /24 per row; a small subnet
// has fewer columns and larger cells.

export const BLOCK = 256;
const COLUMNS = [256, 128, 64, 32, 16];
const LARGEST_CELL = 26; // CSS pixels: beyond that a /24 looks like a chessboard
const SMALLEST_CELL = 2;
const WANTED_HEIGHT = 720;
const MUCH = 1.25; // cells that are only a little larger are not worth a map that is twice as high

/**
 * @typedef {object} Layout
 * @property {number} blocks
 * @property {number} columns addresses per row
 * @property {number} rows rows per block
 * @property {number} cell size of a cell in device pixels
 * @property {number} gap device pixels between blocks
 * @property {number} width device pixels
 * @property {number} height device pixels
 * @property {number} ratio device pixels per CSS pixel
 */

/**
 * The largest cells, more or less, with which the map is not higher than a screen; where none is, the lowest map.
 * @param {number} blocks
 * @param {number} width CSS pixels
 * @param {number} ratio device pixels per CSS pixel
 * @returns {Layout}
 */
export function layoutFor(blocks, width, ratio) {
  let best = null;
  for (const columns of COLUMNS) {
    const cell = Math.floor(Math.min(LARGEST_CELL * ratio, (width * ratio) / columns));
    if (cell < SMALLEST_CELL * ratio && columns !== COLUMNS.at(-1)) continue;
    const candidate = sized(blocks, columns, Math.max(1, cell), ratio);
    const fits = candidate.height <= WANTED_HEIGHT * ratio;
    const bestFits = best !== null && best.height <= WANTED_HEIGHT * ratio;
    const isLarger = best !== null && candidate.cell > best.cell * MUCH;
    if (best === null || (fits && bestFits && isLarger) || (fits && !bestFits)) best = candidate;
  }
  return best;
}

function sized(blocks, columns, cell, ratio) {
  const rows = BLOCK / columns;
  const gap = rows === 1 ? 0 : Math.max(1, Math.round(Math.min(6, cell / ratio / 3) * ratio));
  return {
    blocks, columns, rows, cell, gap, ratio,
    width: columns * cell,
    height: blocks * (rows * cell + gap) - gap,
  };
}

/** Top of a block in device pixels. */
export function blockTop(layout, block) {
  return block * (layout.rows * layout.cell + layout.gap);
}

/**
 * The address under a point, or null between blocks and outside.
 * @param {Layout} layout
 * @param {number} x device pixels
 * @param {number} y device pixels
 * @returns {{block: number, index: number}|null}
 */
export function cellAt(layout, x, y) {
  const pitch = layout.rows * layout.cell + layout.gap;
  const block = Math.floor(y / pitch);
  const row = Math.floor((y - block * pitch) / layout.cell);
  const column = Math.floor(x / layout.cell);
  if (block < 0 || block >= layout.blocks || row >= layout.rows || column < 0 || column >= layout.columns) return null;
  return { block, index: row * layout.columns + column };
}

/** The upper left corner of an address in device pixels. */
export function cornerOf(layout, { block, index }) {
  const column = index % layout.columns;
  const row = (index - column) / layout.columns;
  return { x: column * layout.cell, y: blockTop(layout, block) + row * layout.cell };
}

/**
 * Where a key leads from an address; null for keys that move nothing. Left and right go on in the next row, so that
 * every address can be reached with one key.
 */
export function moved(layout, { block, index }, key) {
  const steps = {
    ArrowLeft: -1,
    ArrowRight: 1,
    ArrowUp: -layout.columns,
    ArrowDown: layout.columns,
    PageUp: -BLOCK,
    PageDown: BLOCK,
  };
  const last = layout.blocks * BLOCK - 1;
  const at = block * BLOCK + index;
  let next = null;
  if (key in steps) next = at + steps[key];
  else if (key === "Home") next = 0;
  else if (key === "End") next = last;
  if (next === null) return null;
  if (next < 0 || next > last) next = at; // the map has no other side
  return { block: Math.floor(next / BLOCK), index: next % BLOCK };
}

/** Blocks that carry a label: as many as have room. */
export function labelledBlocks(layout, spacing) {
  const pitch = (layout.rows * layout.cell + layout.gap) / layout.ratio;
  const powers = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
  const every = powers.find((step) => step * pitch >= spacing) ?? 1024;
  const blocks = [];
  for (let block = 0; block < layout.blocks; block += every) blocks.push(block);
  return blocks;
}

/**
 * Ranges of blocks to ask for, given those that changed: neighbours are asked for together, since a request costs
 * more than a few blocks.
 * @param {Iterable<number>} blocks
 * @param {number} most blocks in one range
 * @returns {{from: number, count: number}[]}
 */
export function blockRanges(blocks, most = 256, join = 8) {
  const ranges = [];
  for (const block of [...new Set(blocks)].sort((a, b) => a - b)) {
    const open = ranges.at(-1);
    if (open && block < open.from + open.count + join && block - open.from < most) open.count = block - open.from + 1;
    else ranges.push({ from: block, count: 1 });
  }
  return ranges;
}
