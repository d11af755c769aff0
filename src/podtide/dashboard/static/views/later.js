// Parts of a view that can wait a frame: a page that mounts all at once blocks its first frame for as long as all of it
// takes, while code that has just come runs slowly.

import { html, useEffect, useRef, useState } from "../html.js";

/** Shows its children from the next frame on. */
export function Later({ children }) {
  const [due, setDue] = useState(false);
  useEffect(() => {
    const frame = requestAnimationFrame(() => setDue(true));
    return () => cancelAnimationFrame(frame);
  }, []);
  return due ? html`${children}` : null;
}

/**
 * What a module exports, once it is there; null before. It is asked for when the part is first shown.
 * @param {() => Promise<object>} load
 */
export function useModule(load) {
  const [loaded, setLoaded] = useState(null);
  useEffect(() => {
    load().then(setLoaded);
  }, []);
  return loaded;
}

/** The nodes as they were at most so many milliseconds ago: in a burst every event brings others. */
export function useSettled(nodes, milliseconds) {
  const [settled, setSettled] = useState(nodes);
  const latest = useRef(nodes);
  latest.current = nodes;
  useEffect(() => {
    const timer = setInterval(() => setSettled(latest.current), milliseconds);
    return () => clearInterval(timer);
  }, []);
  return settled.size === 0 ? nodes : settled;
}
