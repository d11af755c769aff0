// Parts of a view that can wait a frame: a page that mounts all at once blocks its first frame for as long as all of it
// takes, while code that has just come runs slowly.

import { html, useEffect, useState } from "../html.js";

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
