import assert from "node:assert/strict";
import { test } from "node:test";
import { paintBlock } from "../../../src/podtide/dashboard/static/map/block_pixels.js";
import { MapContents, UtilizationContents } from "../../../src/podtide/dashboard/static/map/contents.js";
import { BLOCK, blockRanges, cellAt, cornerOf, labelledBlocks, layoutFor, moved } from "../../../src/podtide/dashboard/static/map/geometry.js";
import { STATES, pixel, scaleStep, shadeOf, statePalette } from "../../../src/podtide/dashboard/static/map/states.js";

const base64 = (bytes) => Buffer.from(bytes).toString("base64");

test("every address has one place, and a point in it finds the address again", () => {
  for (const [blocks, width, ratio] of [[1, 920, 1], [1, 350, 3], [16, 900, 1], [256, 1100, 2], [256, 350, 2], [1024, 700, 1]]) {
    const layout = layoutFor(blocks, width, ratio);
    assert.ok(layout.width <= width * ratio, "it fits in width");
    for (let at = 0; at < blocks * BLOCK; at += 37) {
      const position = { block: Math.floor(at / BLOCK), index: at % BLOCK };
      const { x, y } = cornerOf(layout, position);
      assert.deepEqual(cellAt(layout, x, y), position);
      assert.deepEqual(cellAt(layout, x + layout.cell - 1, y + layout.cell - 1), position);
    }
  }
});

test("a /16 on a wide screen has one /24 per row, and a /24 has large cells", () => {
  assert.equal(layoutFor(256, 1100, 1).columns, 256);
  assert.equal(layoutFor(256, 1100, 1).cell, 4);
  assert.ok(layoutFor(1, 920, 1).cell >= 20);
});

test("between blocks and outside there is no address", () => {
  const layout = layoutFor(4, 600, 1);
  assert.ok(layout.gap > 0);
  assert.equal(cellAt(layout, 0, layout.rows * layout.cell), null);
  assert.equal(cellAt(layout, -1, 0), null);
  assert.equal(cellAt(layout, layout.width, 0), null);
  assert.equal(cellAt(layout, 0, layout.height), null);
});

test("arrow keys walk in address order and stop at the ends", () => {
  const layout = layoutFor(2, 920, 1);
  assert.deepEqual(moved(layout, { block: 0, index: 255 }, "ArrowRight"), { block: 1, index: 0 });
  assert.deepEqual(moved(layout, { block: 0, index: 0 }, "ArrowLeft"), { block: 0, index: 0 });
  assert.deepEqual(moved(layout, { block: 0, index: 3 }, "ArrowDown"), { block: 0, index: 3 + layout.columns });
  assert.deepEqual(moved(layout, { block: 0, index: 3 }, "End"), { block: 1, index: 255 });
  assert.equal(moved(layout, { block: 0, index: 3 }, "x"), null);
});

test("labels have room", () => {
  const layout = layoutFor(256, 1100, 1);
  const labels = labelledBlocks(layout, 15);
  assert.ok(labels.length > 10 && ((labels[1] - labels[0]) * layout.rows * layout.cell) / layout.ratio >= 15);
});

test("changed blocks are asked for in few ranges that hold them all", () => {
  assert.deepEqual(blockRanges([]), []);
  assert.deepEqual(blockRanges([5, 3, 3, 4, 100]), [{ from: 3, count: 3 }, { from: 100, count: 1 }]);
  const ranges = blockRanges(Array(1000).keys(), 256);
  assert.ok(ranges.every((range) => range.count <= 256));
  assert.equal(ranges.reduce((sum, range) => sum + range.count, 0), 1000);
});

function answer(first, cells, owners, nodes) {
  const words = new Uint8Array(owners.length * 2);
  owners.forEach((owner, i) => words.set([owner & 255, owner >> 8], 2 * i));
  return { first, nodes, pods: "all", cells: base64(cells), owners: base64(words), bases: [`10.0.${first}.0`] };
}

test("each answer numbers its nodes anew, the map numbers them once", () => {
  const contents = new MapContents(2);
  contents.take(answer(0, Array(256).fill(4), Array(256).fill(1), ["alpha"]));
  contents.take(answer(1, Array(256).fill(4), Array(256).fill(2), ["beta", "alpha"]));
  assert.equal(contents.at({ block: 0, index: 9 }).node, "alpha");
  assert.deepEqual(contents.at({ block: 1, index: 9 }), { address: "10.0.1.9", state: 4, node: "alpha" });
  assert.equal(contents.counts("alpha")[4], 512);
  assert.equal(contents.counts("gone")[4], 0);
});

test("only blocks that look different are drawn again", () => {
  const contents = new MapContents(1);
  const cells = Array(256).fill(2);
  assert.deepEqual(contents.take(answer(0, cells, Array(256).fill(0), [])), [0]);
  assert.deepEqual(contents.take(answer(0, cells, Array(256).fill(0), [])), []);
  cells[7] = 7;
  assert.deepEqual(contents.take(answer(0, cells, Array(256).fill(0), [])), [0]);
});

test("pods of the node looked at are coloured from its own answer", () => {
  const contents = new MapContents(1);
  contents.take(answer(0, Array(256).fill(4), Array(256).fill(1), ["alpha"]));
  assert.deepEqual(contents.takePods("alpha", [{ address: "10.0.0.5", pod: "a/b" }, { address: "10.0.0.6", pod: null }]), [0]);
  assert.equal(contents.at({ block: 0, index: 5 }).state, 5);
  assert.equal(contents.at({ block: 0, index: 6 }).state, 4);
});

test("a part of a subnet starts at its own block", () => {
  const contents = new MapContents(1, 77);
  contents.take(answer(77, Array(256).fill(2), Array(256).fill(0), []));
  assert.equal(contents.at({ block: 0, index: 1 }).address, "10.0.77.1");
});

test("utilization tells an unused /24 from one that is not there", () => {
  const contents = new UtilizationContents(300);
  assert.deepEqual(contents.take({ first: 0, prefix: 24, used: [0, 256], bases: ["10.0.0.0", "10.0.1.0"] }), [0]);
  assert.deepEqual(contents.at({ block: 0, index: 1 }), { base: "10.0.1.0", used: 256, at: 1 });
  assert.equal(contents.at({ block: 1, index: 200 }), null);
  assert.notEqual(contents.cells[0], contents.cells[2]);
});

test("the scale rises with use, and only a full /24 is full", () => {
  const steps = Array.from({ length: 257 }, (_, used) => scaleStep(used));
  assert.deepEqual(steps, steps.toSorted((a, b) => a - b));
  assert.deepEqual([steps[0], steps[1], steps[255], steps[256]], [0, 1, 7, 8]);
});

test("the shade of a node rises with what its pods need of it", () => {
  const shades = [[0, 0], [0, 9], [1, 9], [5, 5], [9, 1], [9, 0]].map(([pods, idle]) => shadeOf({ pods, idle }));
  assert.deepEqual(shades, [0, 0, 0, 2, 4, 4]);
});

test("a pixel has the bytes red, green, blue, opaque", () => {
  assert.deepEqual([...new Uint8Array(Uint32Array.of(pixel("#0a62a6")).buffer)], [0x0a, 0x62, 0xa6, 255]);
});

const LARGE_CELLS = layoutFor(1, 920, 1);
const SMALL_CELLS = layoutFor(256, 1100, 1); // 4 pixels: a /16
const SMALL_WITH_GRID = layoutFor(64, 1700, 1); // 6 pixels

function painted(cells, owners, look, layout) {
  const pixels = new Uint32Array(layout.width * layout.rows * layout.cell);
  paintBlock(pixels, layout, Uint8Array.from(cells), Uint32Array.from(owners), statePalette("light"), look);
  const middle = Math.floor(layout.cell / 3);
  return (index, dx = middle, dy = middle) => {
    const { x, y } = cornerOf(layout, { block: 0, index });
    return pixels[(y + dy) * layout.width + x + dx];
  };
}
const ALL = { owner: 0, states: 0xffff };

for (const layout of [LARGE_CELLS, SMALL_CELLS, SMALL_WITH_GRID]) {
test(`a cell of ${layout.cell} pixels has the colour of its state, and is dimmed when another node or state is looked at`, () => {
  const cells = Array(256).fill(5);
  const owners = cells.map((_, i) => (i < 128 ? 1 : 2));
  const palette = statePalette("light");
  assert.equal(painted(cells, owners, ALL, layout)(3), palette.fill[5]);
  const lit = painted(cells, owners, { owner: 2, states: 0xffff }, layout);
  assert.equal(lit(3), palette.dim[5]);
  assert.equal(lit(200), palette.fill[5]);
  assert.equal(painted(cells, owners, { owner: 0, states: 0xffff & ~(1 << 5) }, layout)(200), palette.dim[5]);
});

test(`where pods are not told, a cell of ${layout.cell} pixels has the stronger blue, the more of its node's addresses they need`, () => {
  const owners = Array.from({ length: 256 }, (_, i) => (i < 128 ? 1 : 2));
  const { fill, held } = statePalette("light");
  const at = painted(Array(256).fill(4).fill(6, 250), owners, { ...ALL, shades: Uint8Array.of(0, 0, 4) }, layout);
  assert.deepEqual([at(3), at(200), at(252)], [fill[4], fill[5], fill[6]]);
  assert.deepEqual([held[0], held[4], held.length], [fill[4], fill[5], 5]);
});

test(`with cells of ${layout.cell} pixels, a line stands where the neighbour's node is another one, and nowhere else`, () => {
  const cells = Array(256).fill(5);
  const owners = cells.map((_, i) => (i < 40 ? 1 : 2));
  const at = painted(cells, owners, ALL, layout);
  const { outline, fill } = statePalette("light");
  assert.equal(at(40, 0), outline);
  assert.equal(at(41, 0), fill[5]);
  assert.equal(at(32, 0), fill[5], "a node that goes on in the next row is open there");
});

test(`an address outside the subnet is not drawn with cells of ${layout.cell} pixels`, () => {
  const cells = Array(256).fill(5).fill(0, 0, 10);
  const at = painted(cells, Array(256).fill(0), ALL, layout);
  const { surface, fill } = statePalette("light");
  assert.equal(at(9), surface);
  assert.equal(at(10), fill[5]);
  assert.equal(at(255), fill[5], "to the last line");
});
}

test("each state differs from all others in lightness or mark, so that colour is not needed", () => {
  const lightness = (hex) => [1, 3, 5].reduce((sum, i, k) => sum + parseInt(hex.slice(i, i + 2), 16) * [0.2126, 0.7152, 0.0722][k], 0);
  for (const theme of ["light", "dark"]) {
    for (const a of STATES.slice(1)) {
      for (const b of STATES.slice(a.code + 1)) {
        assert.ok(a.mark !== b.mark || Math.abs(lightness(a[theme]) - lightness(b[theme])) > 12, `${a.key} and ${b.key}, ${theme}`);
      }
    }
  }
});
