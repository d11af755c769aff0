// The part of a map that is the same for addresses and for utilization: canvas, labels, cursor for pointer and
// keyboard, and the readout beside it.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { cellAt, cornerOf, blockTop, labelledBlocks, layoutFor, moved } from "../map/geometry.js";
import { MapPainter } from "../map/painter.js";

const LABEL_WIDTH = 88;
const NARROW = 560;

/**
 * @param {object} props
 * @param {object} props.contents
 * @param {{blocks: number[], round: number}} props.touched blocks that changed since the last drawing
 * @param {object} props.palette
 * @param {{owner: number, states: number}} props.look
 * @param {string} props.name what the map is called for screen readers
 * @param {(block: number) => string} props.label
 * @param {(position: {block: number, index: number}) => any} props.readout what is told of a position; null: nothing
 * @param {(position: {block: number, index: number}) => void} props.onPick
 */
export function MapSurface({ contents, touched, palette, look, name, label, readout, onPick }) {
  const frame = useRef(null);
  const canvas = useRef(null);
  const painter = useRef(null);
  const [width, setWidth] = useState(0);
  const [cursor, setCursor] = useState(null);
  const narrow = width < NARROW;
  const layout = useMemo(
    () => (width ? layoutFor(contents.blocks, width - (narrow ? 0 : LABEL_WIDTH), devicePixelRatio || 1) : null),
    [contents, width],
  );

  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    observer.observe(frame.current);
    painter.current = new MapPainter(canvas.current);
    return () => {
      observer.disconnect();
      painter.current.stop();
    };
  }, []);
  useEffect(() => {
    if (layout) painter.current.show({ contents, layout, palette, look });
  }, [contents, layout, palette, look]);
  useEffect(() => painter.current.touch(touched.blocks), [touched]);
  useEffect(() => setCursor(null), [contents]);

  // Where the canvas stands is asked for when something happens, never while drawing: there it would force a layout.
  const boxOf = () => canvas.current.getBoundingClientRect();
  const at = (event, box) => cellAt(layout, (event.clientX - box.left) * layout.ratio, (event.clientY - box.top) * layout.ratio);
  const point = (event) => {
    const box = boxOf();
    const position = at(event, box);
    if (position?.block !== cursor?.block || position?.index !== cursor?.index || cursor?.byKey) {
      setCursor(position && { ...position, box, byKey: false });
    }
  };
  const press = (event) => {
    if (!layout) return;
    if ((event.key === "Enter" || event.key === " ") && cursor) {
      event.preventDefault();
      onPick(cursor);
    } else if (event.key === "Escape") {
      setCursor(null);
    } else {
      const next = moved(layout, cursor ?? { block: 0, index: 0 }, event.key);
      if (next === null) return;
      event.preventDefault();
      setCursor({ ...(cursor ? next : { block: 0, index: 0 }), box: boxOf(), byKey: true });
    }
  };

  // Kept while the cursor moves: an element that is the same object is not looked at again.
  const labels = useMemo(
    () => html`<div class="map-labels" aria-hidden="true">
      ${layout && !narrow && labelledBlocks(layout, 15).map((block) => html`
        <span key=${block} style=${{ top: `${blockTop(layout, block) / layout.ratio}px` }}>${label(block)}</span>`)}
    </div>`,
    [layout, narrow, touched],
  );
  const told = cursor && layout ? readout(cursor) : null;
  const ratio = layout?.ratio ?? 1;
  const size = layout ? { width: `${layout.width / ratio}px`, height: `${layout.height / ratio}px` } : {};
  return html`
    <div class="map ${narrow ? "narrow" : ""}" ref=${frame}>
      ${labels}
      <div class="map-surface" role="application" tabindex="0" aria-label=${name} aria-describedby="map-keys" data-map
        onPointerMove=${point} onPointerDown=${point} onPointerLeave=${() => !cursor?.byKey && setCursor(null)}
        onClick=${(event) => { const position = at(event, boxOf()); if (position) onPick(position); }}
        onKeyDown=${press} onBlur=${() => cursor?.byKey && setCursor(null)}>
        <canvas ref=${canvas} style=${size}></canvas>
        ${told && html`<div class="map-cursor" style=${cursorBox(layout, cursor)}></div>`}
        <div class="map-readout" data-readout aria-live=${cursor?.byKey ? "polite" : "off"} hidden=${!told}
          style=${told ? readoutPlace(layout, cursor) : {}}>${told}</div>
      </div>
      <p id="map-keys" class="unseen">Arrow keys move from address to address, Page Up and Page Down by 256. Enter opens what is there.</p>
    </div>`;
}

function cursorBox(layout, cursor) {
  const { x, y } = cornerOf(layout, cursor);
  const size = `${Math.max(layout.cell / layout.ratio, 4)}px`;
  return { transform: `translate(${x / layout.ratio}px, ${y / layout.ratio}px)`, width: size, height: size };
}

/** Beside the cell, on the side where there is room. */
function readoutPlace(layout, cursor) {
  const { x, y } = cornerOf(layout, cursor);
  const [left, top, cell] = [x / layout.ratio, y / layout.ratio, layout.cell / layout.ratio];
  const { box } = cursor;
  const room = Math.min(300, box.width);
  const above = box.top + top + cell + 170 > innerHeight && box.top + top > 180;
  return {
    left: `${Math.max(0, Math.min(left + cell + 8, box.width - room))}px`,
    top: above ? "auto" : `${top + cell + 8}px`,
    bottom: above ? `${box.height - top + 8}px` : "auto",
  };
}
