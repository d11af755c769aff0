// The states an address can be in, as the server numbers them, and how each looks. Blue, orange and ink are told
// apart with every kind of colour blindness; larger cells carry a mark as well, so that colour is never alone.

/** @typedef {"none"|"dot"|"hatch"|"bars"|"corner"|"cross"} Mark */

/**
 * @type {{code: number, key: string, title: string, hint: string, mark: Mark, light: string, dark: string}[]}
 * Index is the server's number.
 */
export const STATES = [
  { code: 0, key: "outside", title: "outside", hint: "not part of the subnet", mark: "none", light: "#f6f8fa", dark: "#0f141b" },
  { code: 1, key: "kept", title: "kept back", hint: "network, gateway, last address, or reserved by the subnet's definition", mark: "hatch", light: "#c3cad3", dark: "#3a4452" },
  { code: 2, key: "free", title: "free", hint: "not reserved for any node", mark: "none", light: "#e3e8ee", dark: "#222b37" },
  { code: 3, key: "primary", title: "primary", hint: "a node's own address of its network container", mark: "dot", light: "#273142", dark: "#e8edf4" },
  { code: 4, key: "idle", title: "idle on a node", hint: "held by a node; no pod is known to have it", mark: "none", light: "#93c9ee", dark: "#2a5f8a" },
  { code: 5, key: "pod", title: "on a pod", hint: "a pod has it", mark: "none", light: "#0a62a6", dark: "#5db8fb" },
  { code: 6, key: "releasing", title: "being released", hint: "its node has named it for release", mark: "corner", light: "#e8a200", dark: "#f0b429" },
  { code: 7, key: "quarantined", title: "quarantined", hint: "kept from use until it is certain that no pod has it", mark: "cross", light: "#c43d0a", dark: "#f2703a" },
  { code: 8, key: "draining", title: "draining", hint: "in a CIDR that is being emptied, not reserved", mark: "bars", light: "#ddd3a8", dark: "#57502f" },
];

export const IDLE = 4;
export const ON_POD = 5;

/** From a node whose pods need next to nothing of what it holds, to one whose pods need nearly all. */
const SHADES = 5;

/** @param {{pods: number, idle: number}} parts of a node's pool */
export function shadeOf({ pods, idle }) {
  return pods > 0 ? Math.min(SHADES - 1, Math.floor((pods * SHADES) / (pods + idle))) : 0;
}

/** Those that stand in the legend, in the order of a life: free, held, used, given back. */
export const LEGEND = ["pod", "idle", "primary", "releasing", "quarantined", "free", "kept", "draining"].map((key) =>
  STATES.find((state) => state.key === key),
);

const SURFACE = { light: "#ffffff", dark: "#151b24" };
const OUTLINE = { light: "#1b2430", dark: "#f2f5f9" };
const MARKS = { hatch: { light: "#a4adb9", dark: "#515d6e" }, bars: { light: "#b0a468", dark: "#857a48" } }; // others: surface

/** Utilization of a /24, from nothing to full, in one hue: a scale that is read by lightness alone. */
const SCALE = {
  light: ["#e3e8ee", "#cfe3f3", "#aed3ee", "#83bce4", "#549fd3", "#2a7fbc", "#0a62a6", "#06457a", "#c43d0a"],
  dark: ["#222b37", "#20384e", "#224b6c", "#28608b", "#3478ab", "#4494cd", "#5db8fb", "#a8dafd", "#f2703a"],
};
export const scaleColours = (theme) => SCALE[theme];
export const SCALE_TITLES = ["0", "≤ 1/7", "≤ 2/7", "≤ 3/7", "≤ 4/7", "≤ 5/7", "≤ 6/7", "< full", "full"];

/** Step of the scale for so many addresses in use of 256. */
export function scaleStep(used) {
  if (used <= 0) return 0;
  return used >= 256 ? 8 : Math.min(7, Math.ceil((used * 7) / 256));
}

/** 0xAABBGGRR, as a Uint32Array over ImageData wants it on little-endian machines (all that run browsers today). */
export function pixel(hex) {
  const value = parseInt(hex.slice(1), 16);
  return ((255 << 24) | ((value & 255) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

/** A colour drawn towards another, both as pixels; share 0 leaves it. */
export function mixed(colour, towards, share) {
  let result = 0xff000000;
  for (const shift of [0, 8, 16]) {
    const a = (colour >> shift) & 255;
    const b = (towards >> shift) & 255;
    result |= Math.round(a + (b - a) * share) << shift;
  }
  return result >>> 0;
}

/**
 * @typedef {object} Palette
 * @property {Uint32Array} fill per state
 * @property {Uint32Array} dim per state, for what is not looked at
 * @property {Uint32Array} held per shade, for addresses of a node that are idle or on a pod
 * @property {number} surface
 * @property {number} outline
 * @property {number} outlineDim
 * @property {Mark[]} marks per state
 * @property {Uint32Array} mark colour of the mark per state
 * @param {"light"|"dark"} theme
 * @returns {Palette}
 */
export function statePalette(theme) {
  const marks = STATES.map((state) => state.mark);
  return palette(theme, STATES.map((state) => state[theme]), marks);
}

/** @param {"light"|"dark"} theme */
export function scalePalette(theme) {
  // Index 0 is "outside", as it is for states.
  const marks = ["none", ...SCALE[theme].map((_, step) => (step === 8 ? "cross" : "none"))];
  return palette(theme, [SURFACE[theme], ...SCALE[theme]], marks);
}

function palette(theme, colours, marks) {
  const surface = pixel(SURFACE[theme]);
  const fill = Uint32Array.from(colours, pixel);
  const outline = pixel(OUTLINE[theme]);
  return {
    fill,
    dim: fill.map((colour) => mixed(colour, surface, 0.82)),
    held: Uint32Array.from({ length: SHADES }, (_, shade) => mixed(fill[IDLE], fill[ON_POD], shade / (SHADES - 1))),
    surface,
    outline,
    outlineDim: mixed(outline, surface, 0.8),
    marks,
    mark: Uint32Array.from(marks, (mark) => pixel(MARKS[mark]?.[theme] ?? SURFACE[theme])),
  };
}
