// The stream's reconnects, on a clock that stands still until it is told: an hour of sleep cannot be waited for.

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";

const listeners = {};
globalThis.document = { visibilityState: "visible", addEventListener: (name, listener) => (listeners[name] = listener) };
globalThis.addEventListener = (name, listener) => (listeners[name] = listener);
const { Connection } = await import("../../../src/podtide/dashboard/static/live/connection.js");

let requests;
let told;
let answer;
let connection;

/** Lets all that is ready happen, without moving the clock. */
async function settle() {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}

function stream({ signal }) {
  let write;
  const body = new ReadableStream({
    start(controller) {
      write = controller;
      signal.addEventListener("abort", () => controller.error(new Error("aborted")));
    },
  });
  requests.at(-1).send = (text) => write.enqueue(new TextEncoder().encode(text));
  requests.at(-1).end = () => write.close();
  return new Response(body, { status: 200 });
}

beforeEach(async () => {
  mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
  requests = [];
  told = [];
  answer = stream;
  globalThis.fetch = async (path, options) => {
    requests.push({ path, headers: options.headers });
    return answer(options);
  };
  connection = new Connection({
    onEvent: (event, data) => told.push([event, data]),
    onByte: () => {},
    onOpen: () => told.push("open"),
    onLost: (why) => told.push(["lost", why]),
    onUnauthorized: (why) => told.push(["unauthorized", why]),
  });
  connection.start();
  await settle();
});

afterEach(() => {
  connection.stop();
  mock.timers.reset();
});

test("after a drop it goes on behind the last event that was applied", async () => {
  assert.equal(requests[0].headers["Last-Event-ID"], undefined);
  requests[0].send('id: 7.4\nevent: snapshot\ndata: {"a":1}\n\nid: 7.5\nevent: change\ndata: {"un');
  await settle();
  assert.deepEqual(told, ["open", ["snapshot", { a: 1 }]]);
  requests[0].end();
  await settle();
  assert.equal(told.at(-1)[0], "lost");
  mock.timers.tick(700);
  await settle();
  assert.equal(requests[1].headers["Last-Event-ID"], "7.4", "half an event does not count");
});

test("it waits longer after each failure, at most some ten seconds, and tries for ever", async () => {
  requests[0].end();
  answer = () => {
    throw new TypeError("refused");
  };
  await settle();
  for (let i = 0; i < 12; i++) {
    mock.timers.tick(12_500);
    await settle();
  }
  assert.equal(requests.length, 13);
  mock.timers.tick(7_000);
  await settle();
  assert.equal(requests.length, 13, "not before three quarters of ten seconds");
});

test("45 s without a byte are a drop, and a comment is a byte", async () => {
  for (let i = 0; i < 5; i++) {
    mock.timers.tick(40_000);
    requests[0].send(": alive\n\n");
    await settle();
  }
  assert.deepEqual(told, ["open"]);
  mock.timers.tick(51_000);
  await settle();
  assert.deepEqual(told.at(-1), ["lost", "Nothing was received for a while."]);
});

test("a browser that wakes up looks at once, and does not wait for its timers", async () => {
  mock.timers.setTime(Date.now() + 3_600_000); // asleep: the clock went on, the timers did not
  listeners.visibilitychange();
  await settle();
  assert.equal(told.at(-1)[0], "lost");
  listeners.visibilitychange();
  await settle();
  assert.equal(requests.length, 2);
});

test("a look at a connection that works leaves it alone", async () => {
  requests[0].send(": alive\n\n");
  await settle();
  listeners.visibilitychange();
  await settle();
  assert.equal(requests.length, 1);
});

test("a token that is refused ends the attempts, with the server's own sentence", async () => {
  requests[0].end();
  answer = () => new Response('{"error": "Not this one."}', { status: 401 });
  await settle();
  mock.timers.tick(700);
  await settle();
  assert.deepEqual(told.at(-1), ["unauthorized", "Not this one."]);
  mock.timers.tick(600_000);
  await settle();
  assert.equal(requests.length, 2);
});

test("a server that is busy is tried again", async () => {
  requests[0].end();
  answer = () => new Response('{"error": "Too many pages are open."}', { status: 503 });
  await settle();
  mock.timers.tick(700);
  await settle();
  assert.deepEqual(told.at(-1), ["lost", "Too many pages are open."]);
  answer = stream;
  mock.timers.tick(2_000);
  await settle();
  assert.equal(told.at(-1), "open");
});
