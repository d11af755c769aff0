// Which rows of a long table are drawn: those in sight and a few around them.

/**
 * @param {{total: number, rowHeight: number, scrollTop: number, height: number, margin?: number}} view
 * @returns {{first: number, last: number, above: number, below: number}} rows first to last (excluded), and the
 *   heights that stand for the rest
 */
export function visibleRows({ total, rowHeight, scrollTop, height, margin = 8 }) {
  const first = Math.max(0, Math.min(total, Math.floor(scrollTop / rowHeight)) - margin);
  const last = Math.min(total, Math.ceil((scrollTop + height) / rowHeight) + margin);
  return { first, last: Math.max(first, last), above: first * rowHeight, below: (total - Math.max(first, last)) * rowHeight };
}
