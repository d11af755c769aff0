// An answer of the server as a view needs it: asked for when the view opens, again at an interval, and never while
// the page is hidden.

import { useEffect, useState } from "../html.js";
import { ask } from "./api.js";

/**
 * @param {string|null} path null: ask nothing
 * @param {number} [every] seconds; 0 = once
 * @param {{key: string, query: () => string}} [moving] a part of the query that moves with the clock: its text may
 *   change without being another question, its key may not
 * @returns {{data: any, error: Error|null}} the last answer stays while the next one is asked for, and when that fails
 */
export function useResource(path, every = 0, moving = { key: "", query: () => "" }) {
  const question = path === null ? null : `${path} ${moving.key}`;
  const [answer, setAnswer] = useState({ question: null, data: null, error: null });
  useEffect(() => {
    if (path === null) return undefined;
    const abort = new AbortController();
    let timer = null;
    const load = async () => {
      if (document.visibilityState === "visible") {
        try {
          const data = await ask(path + moving.query(), abort.signal);
          if (!abort.signal.aborted) setAnswer({ question, data, error: null });
        } catch (error) {
          if (abort.signal.aborted) return;
          setAnswer((last) => ({ question, data: last.question === question ? last.data : null, error }));
        }
      }
      if (every && !abort.signal.aborted) timer = setTimeout(load, every * 1000);
    };
    load();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [question, every]);
  return question !== null && answer.question === question ? answer : { data: null, error: null };
}
