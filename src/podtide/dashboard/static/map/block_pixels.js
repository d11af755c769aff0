// The pixels of one block of the map. Pure arithmetic on arrays: the canvas only copies the result, which keeps a
// block under a tenth of a millisecond.

import { BLOCK } from "./geometry.js";
import { IDLE } from "./states.js";

/** Cells smaller than these (device pixels) have no room for lines between them, or for marks. */
const GRID_FROM = 5;
const MARK_FROM = 9;
const ALL_EDGES_FROM = 8; // smaller ones get the line to another node on their left alone

/**
 * @typedef {object} Look what the reader looks at
 * @property {number} owner the node that is lit up, 0 = none
 * @property {number} states bit per state: those that are not dimmed
 * @property {Uint8Array|null} [shades] per node, how much of what it holds its pods need: where it is not told which
 *   addresses these are
 */

/**
 * @param {Uint32Array} pixels of rows × cell lines, each columns × cell long
 * @param {import("./geometry.js").Layout} layout
 * @param {Uint8Array} cells state per address
 * @param {Uint32Array} owners node per address, 0 = none
 * @param {import("./states.js").Palette} palette
 * @param {Look} look
 */
export function paintBlock(pixels, layout, cells, owners, palette, look) {
  if (layout.cell < ALL_EDGES_FROM) paintSmall(pixels, layout, cells, owners, palette, look);
  else paintLarge(pixels, layout, cells, owners, palette, look);
}

/** Small cells have no marks and no lines above or below: all lines of a row are one line, which is copied. */
function paintSmall(pixels, layout, cells, owners, palette, look) {
  const { cell, width, columns, rows } = layout;
  const size = inner(cell);
  const thick = Math.min(outlineOf(layout), size);
  for (let row = 0, index = 0, line = 0; row < rows; row++, line += cell * width) {
    for (let column = 0, at = line; column < columns; column++, index++) {
      const state = cells[index];
      const owner = owners[index];
      const seen = look.owner === 0 || owner === look.owner;
      const lit = seen && (look.states >> state) & 1;
      const fill = state === 0 ? palette.surface : lit ? litFill(palette, look, state, owner) : palette.dim[state];
      const edge = owner !== 0 && (index === 0 || owners[index - 1] !== owner) ? thick : 0;
      const outline = seen ? palette.outline : palette.outlineDim;
      for (let x = 0; x < cell; x++, at++) pixels[at] = x < edge ? outline : x < size ? fill : palette.surface;
    }
    for (let y = 1; y < size; y++) pixels.copyWithin(line + y * width, line, line + width);
    if (size < cell) pixels.fill(palette.surface, line + size * width, line + cell * width);
  }
}

function paintLarge(pixels, layout, cells, owners, palette, look) {
  pixels.fill(palette.surface);
  for (let index = 0; index < BLOCK; index++) {
    const state = cells[index];
    if (state === 0) continue;
    const lit = (look.owner === 0 || owners[index] === look.owner) && (look.states >> state) & 1;
    fillCell(pixels, layout, index, lit ? litFill(palette, look, state, owners[index]) : palette.dim[state]);
    if (lit && layout.cell >= MARK_FROM) markCell(pixels, layout, index, palette.marks[state], palette.mark[state]);
  }
  for (let index = 0; index < BLOCK; index++) {
    if (owners[index] === 0) continue;
    const lit = look.owner === 0 || owners[index] === look.owner;
    outlineCell(pixels, layout, index, owners, lit ? palette.outline : palette.outlineDim);
  }
}

function litFill(palette, look, state, owner) {
  return look.shades && state === IDLE ? palette.held[look.shades[owner] | 0] : palette.fill[state];
}

function corner(layout, index) {
  const column = index % layout.columns;
  const row = (index - column) / layout.columns;
  return row * layout.cell * layout.width + column * layout.cell;
}

/** How thick the line around a node is. */
function outlineOf({ cell, ratio }) {
  return cell >= 14 * ratio ? Math.max(1, Math.round(1.5 * ratio)) : Math.max(1, Math.floor(ratio));
}

/** The size of a cell without the line to its neighbour. */
function inner(cell) {
  return cell >= GRID_FROM ? cell - 1 : cell;
}

function fillCell(pixels, layout, index, colour) {
  const { cell, width } = layout;
  const size = inner(cell);
  let start = corner(layout, index);
  for (let y = 0; y < size; y++, start += width) pixels.fill(colour, start, start + size);
}

function markCell(pixels, layout, index, mark, colour) {
  if (mark === "none") return;
  const { cell, width } = layout;
  const size = cell - 1;
  const start = corner(layout, index);
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      if (marked(mark, x, y, size)) pixels[start + y * width + x] = colour;
    }
  }
}

/** Whether a mark covers a pixel of a cell. */
export function marked(mark, x, y, size) {
  if (mark === "dot") {
    const middle = (size - 1) / 2;
    return (x - middle) ** 2 + (y - middle) ** 2 <= (size / 5) ** 2;
  }
  if (mark === "hatch") return (x + y) % Math.max(4, Math.round(size / 4)) === 0;
  if (mark === "bars") return y % Math.max(4, Math.round(size / 4)) === 1;
  if (mark === "corner") return x + y >= size + Math.floor(size / 4);
  if (mark === "cross") {
    const edge = Math.floor(size / 4);
    if (x < edge || y < edge || x >= size - edge || y >= size - edge) return false;
    const thick = Math.max(0, Math.floor(size / 14));
    return Math.abs(x - y) <= thick || Math.abs(x + y - size + 1) <= thick;
  }
  return false;
}

/**
 * Lines where the neighbour belongs to another node. At the end of a row the neighbour is the next address: a node
 * whose addresses go on in the next row stays open there.
 */
function outlineCell(pixels, layout, index, owners, colour) {
  const { cell, width, columns } = layout;
  const owner = owners[index];
  const start = corner(layout, index);
  const thick = outlineOf(layout);
  const size = inner(cell);
  if (index === 0 || owners[index - 1] !== owner) vertical(pixels, start, width, thick, size, colour);
  // Between two nodes one line is enough: the later one's left and upper edge.
  if (index === BLOCK - 1 || owners[index + 1] === 0) vertical(pixels, start + size - thick, width, thick, size, colour);
  if (index < columns || owners[index - columns] !== owner) horizontal(pixels, start, width, size, thick, colour);
  if (index >= BLOCK - columns || owners[index + columns] === 0) {
    horizontal(pixels, start + (size - thick) * width, width, size, thick, colour);
  }
}

function vertical(pixels, start, width, thick, size, colour) {
  for (let y = 0, at = start; y < size; y++, at += width) pixels.fill(colour, at, at + thick);
}

function horizontal(pixels, start, width, size, thick, colour) {
  for (let y = 0, at = start; y < thick; y++, at += width) pixels.fill(colour, at, at + size);
}
