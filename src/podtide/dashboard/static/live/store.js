// What all views draw from: the cluster's state, the connection's, and the route. Changes are gathered until the
// browser draws its next frame, so that a burst of events is one drawing.

import { applyEvent, emptyState } from "../logic/cluster_state.js";
import { parseRoute } from "../logic/routes.js";
import { whenUnauthorized } from "./api.js";
import { Connection } from "./connection.js";
import { hasToken, readToken, setToken } from "./token.js";

/**
 * @typedef {object} View
 * @property {import("../logic/cluster_state.js").ClusterState} cluster
 * @property {"loading"|"live"|"lost"|"token"} connection
 * @property {string} why of a connection that is lost, or of a token that is refused
 * @property {number} receivedAt when the last byte came, by this machine's clock
 * @property {import("../logic/routes.js").Route} route
 */

/** @type {View} */
export const view = {
  cluster: emptyState(),
  connection: "loading",
  why: "",
  receivedAt: 0,
  route: parseRoute(""),
};

let draw = () => {};
let planned = false;
const blockListeners = new Set();

/** Draws again with the next frame. */
export function redraw() {
  if (planned) return;
  planned = true;
  requestAnimationFrame(() => {
    planned = false;
    draw();
  });
}

/**
 * @param {(blocks: Record<string, number[]>|null) => void} listener told which blocks of which subnets changed; null:
 *   anything may have
 */
export function onBlocks(listener) {
  blockListeners.add(listener);
  return () => blockListeners.delete(listener);
}

function become(connection, why = "") {
  view.connection = connection;
  view.why = why;
  document.documentElement.dataset.state = connection;
  redraw();
}

const connection = new Connection({
  onEvent(event, data) {
    view.cluster = applyEvent(view.cluster, event, data);
    if (event === "snapshot") blockListeners.forEach((listener) => listener(null));
    else if (data.blocks) blockListeners.forEach((listener) => listener(data.blocks));
    if (view.connection !== "live") become("live");
    redraw();
  },
  onByte() {
    view.receivedAt = Date.now();
  },
  onOpen() {
    // With nothing changed since the drop the server sends no event: what is shown is good again.
    if (view.cluster.cluster !== null) become("live");
  },
  onLost(why) {
    become(view.cluster.cluster === null ? "loading" : "lost", why);
  },
  onUnauthorized: refused,
});

function refused(why) {
  connection.stop();
  become("token", hasToken() ? why || "The token is not the right one." : "");
}

/** @param {string} token from the form */
export function tryToken(token) {
  setToken(token.trim());
  become("loading");
  connection.start();
}

/** @param {() => void} drawing */
export function start(drawing) {
  draw = drawing;
  redraw();
}

function follow() {
  view.route = parseRoute(location.hash);
  redraw();
}

// The page names this module before app.js: the cluster is on its way while the views are.
readToken();
addEventListener("hashchange", () => {
  // A link with a token, opened in a tab that is already here.
  if (location.hash.includes("token=")) {
    readToken();
    connection.stop();
    connection.start();
  }
  follow();
});
whenUnauthorized(() => refused(""));
document.documentElement.dataset.state = "loading";
follow();
connection.start();
