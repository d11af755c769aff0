// Light or dark: the system's choice, until the reader makes another, which is remembered.
// Its own script, so that it is in force before the rest of the page has loaded.

const KEY = "podtide.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set();

function remembered() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null; // storage may be forbidden; the system's choice will do
  }
}

/** @returns {"system"|"light"|"dark"} */
export function chosenTheme() {
  const value = remembered();
  return value === "light" || value === "dark" ? value : "system";
}

/** @returns {"light"|"dark"} what is in force */
export function currentTheme() {
  const chosen = chosenTheme();
  return chosen === "system" ? (system.matches ? "dark" : "light") : chosen;
}

/** From what is in force to the other; back to the system's where that is the same. */
export function toggleTheme() {
  const wanted = currentTheme() === "dark" ? "light" : "dark";
  try {
    if (wanted === (system.matches ? "dark" : "light")) localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, wanted);
  } catch {
    return;
  }
  apply();
}

/** @param {() => void} listener called when the theme in force may have changed */
export function onTheme(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function apply() {
  document.documentElement.dataset.theme = currentTheme();
  for (const listener of listeners) listener();
}

system.addEventListener("change", apply);
apply();
