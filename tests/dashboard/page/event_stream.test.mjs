import assert from "node:assert/strict";
import { test } from "node:test";
import { EventStreamParser } from "../../../src/podtide/dashboard/static/logic/event_stream.js";

const TEXT = ': alive\n\nid: 7.1\nevent: snapshot\ndata: {"a":1}\n\nid: 7.2\r\nevent: change\r\ndata: one\r\ndata: two\r\n\r\n';
const EVENTS = [
  { id: "7.1", event: "snapshot", data: '{"a":1}' },
  { id: "7.2", event: "change", data: "one\ntwo" },
];

test("events come out whole, comments do not", () => {
  assert.deepEqual(new EventStreamParser().feed(TEXT), EVENTS);
});

test("it does not matter where the text is cut", () => {
  for (let size = 1; size < TEXT.length; size++) {
    const parser = new EventStreamParser();
    const events = [];
    for (let at = 0; at < TEXT.length; at += size) events.push(...parser.feed(TEXT.slice(at, at + size)));
    assert.deepEqual(events, EVENTS, `cut every ${size} characters`);
  }
});

test("an event that is not finished is not told", () => {
  const parser = new EventStreamParser();
  assert.deepEqual(parser.feed("event: change\ndata: x\n"), []);
  assert.deepEqual(parser.feed("\n"), [{ id: null, event: "change", data: "x" }]);
});

test("a blank line without data is no event, and an id stays until the next one", () => {
  const parser = new EventStreamParser();
  assert.deepEqual(parser.feed("id: 3\n\ndata:x\n\n"), [{ id: "3", event: "message", data: "x" }]);
});
