// Arithmetic on addresses, of both families, and the bytes that maps travel in.

/**
 * The address a number of steps behind another.
 * @param {string} base
 * @param {number} offset
 */
export function addressAt(base, offset) {
  return base.includes(":") ? laterV6(base, offset) : laterV4(base, offset);
}

function laterV4(base, offset) {
  const value = base.split(".").reduce((sum, part) => sum * 256 + Number(part), 0) + offset;
  return [value / 16777216, value / 65536, value / 256, value].map((part) => Math.floor(part) % 256).join(".");
}

function laterV6(base, offset) {
  const [head, tail] = base.split("::");
  const left = head ? head.split(":") : [];
  const right = tail ? tail.split(":") : [];
  const groups = tail === undefined ? left : [...left, ...Array(8 - left.length - right.length).fill("0"), ...right];
  let value = groups.reduce((sum, group) => sum * 65536n + BigInt(parseInt(group, 16)), 0n) + BigInt(offset);
  const words = [];
  for (let i = 0; i < 8; i++) {
    words.unshift((value % 65536n).toString(16));
    value /= 65536n;
  }
  return shortened(words);
}

/** The longest run of zero groups, two at least, as `::` (RFC 5952). */
function shortened(words) {
  let best = { start: -1, length: 1 };
  for (let i = 0; i < 8; i++) {
    let length = 0;
    while (words[i + length] === "0") length++;
    if (length > best.length) best = { start: i, length };
  }
  if (best.start < 0) return words.join(":");
  return `${words.slice(0, best.start).join(":")}::${words.slice(best.start + best.length).join(":")}`;
}

/** @param {string} text base64 */
export function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text); // browsers of 2025 and later: fifty times as quick
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** 16-bit numbers: little-endian, as are all machines that run browsers today (see `pixel` in map/states.js). */
export function wordsOf(text) {
  const bytes = bytesOf(text);
  return new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length >> 1);
}
