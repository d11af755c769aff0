// The legend of the map, which is also its filter: a state that is switched off is dimmed.

import { html, useEffect, useRef } from "../html.js";
import { count } from "../logic/words.js";
import { IDLE, LEGEND, statePalette } from "../map/states.js";
import { marked } from "../map/block_pixels.js";

const SIZE = 14;
const HELD = { ...LEGEND.find((state) => state.code === IDLE), title: "held by a node", hint: "the stronger its blue, the more of its node's addresses pods need" };

/** A cell as the map draws it, colour and mark; or all its shades. */
export function Swatch({ state, theme, shaded = false }) {
  const canvas = useRef(null);
  useEffect(() => {
    const ratio = Math.max(1, Math.round(devicePixelRatio || 1));
    const size = SIZE * ratio;
    const palette = statePalette(theme);
    canvas.current.width = canvas.current.height = size;
    const context = canvas.current.getContext("2d");
    const image = context.createImageData(size, size);
    const pixels = new Uint32Array(image.data.buffer);
    for (let y = 0; y < size; y++) {
      for (let x = 0; x < size; x++) {
        const covered = marked(state.mark, x, y, size);
        const fill = shaded ? palette.held[Math.floor((x * palette.held.length) / size)] : palette.fill[state.code];
        pixels[y * size + x] = covered ? palette.mark[state.code] : fill;
      }
    }
    context.putImageData(image, 0, 0);
  }, [state, theme, shaded]);
  return html`<canvas class="swatch" ref=${canvas} aria-hidden="true"></canvas>`;
}

/**
 * @param {{counts: Uint32Array, hidden: number, onHidden: (hidden: number) => void, theme: string, shaded: boolean}} props
 *   hidden has a bit per state; shaded: it is not told which addresses pods have
 */
export function Legend({ counts, hidden, onHidden, theme, shaded }) {
  // Draining is rare: it stands in the legend only where there is some.
  const rare = shaded ? ["draining", "quarantined", "pod"] : ["draining", "quarantined"];
  const shown = LEGEND.filter((state) => counts[state.code] > 0 || !rare.includes(state.key)).map((state) =>
    shaded && state.code === IDLE ? HELD : state,
  );
  return html`
    <div class="legend" role="group" aria-label="States shown on the map">
      ${shown.map((state) => html`
        <button key=${state.key} type="button" class="legend-item" data-legend=${state.key} title=${state.hint}
          aria-pressed=${String(!((hidden >> state.code) & 1))} onClick=${() => onHidden(hidden ^ (1 << state.code))}>
          <${Swatch} state=${state} theme=${theme} shaded=${state === HELD} /> ${state.title} <span class="number">${count(counts[state.code])}</span>
        </button>`)}
      ${hidden !== 0 && html`<button type="button" class="link" onClick=${() => onHidden(0)}>show all</button>`}
    </div>`;
}
