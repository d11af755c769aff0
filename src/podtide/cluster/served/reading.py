"""GET: one object, or those of a namespace or of all, once or for as long as one watches.

A watch is a line of JSON for every change, for as long as the client stays, the server runs and it lasts. Without a version
to start from, the present state comes first, as if everything had just been added. A client may also ask for that in so
many words (`sendInitialEvents`), and is then told by a bookmark where the present state ends.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
from aiohttp import ClientConnectionResetError, web

from podtide.cluster.embedded.records import ObjectVersion
from podtide.cluster.embedded.watchers import Watcher
from podtide.cluster.port import Change
from podtide.cluster.served.answers import JSON, list_answer, single_answer, table_maker
from podtide.cluster.served.statuses import BadRequest
from podtide.cluster.served.target import ApiTarget, flag, number
from podtide.resources.base import Api

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"

Show = Callable[[ObjectVersion], bytes]


async def watch(target: ApiTarget, request: web.Request) -> web.StreamResponse:
    """Serve a watch, one line per event."""
    server, kind, selection = target.server, target.kind, target.selection(request)
    asked_seconds = number(request, "timeoutSeconds") or None
    version = request.query.get("resourceVersion", "")
    initial: list[ObjectVersion] = []
    if version in {"", "0"} or flag(request, "sendInitialEvents"):
        listing = server.list(kind, selection)
        initial, version = listing.records, str(listing.version)
    show = _shown(target, request)
    with server.watching(kind, selection, version, asked_seconds) as watcher:
        response = web.StreamResponse()
        response.content_type = JSON
        response.enable_chunked_encoding()
        await response.prepare(request)
        with suppress(ClientConnectionResetError):  # a client that has seen enough just goes
            for record in initial:
                await response.write(_line(Change.ADDED, show(record)))
            if flag(request, "sendInitialEvents"):
                await response.write(_bookmark(kind.api, version, {_INITIAL_EVENTS_END: "true"}))
            while await watcher.news():
                if lines := _unread(watcher, kind.api, show, bookmarks=flag(request, "allowWatchBookmarks")):
                    await response.write(lines)
            await response.write_eof()
    return response


def _unread(watcher: Watcher, api: Api, show: Show, *, bookmarks: bool) -> bytes:
    """All that a watcher has not yet read, as lines."""
    lines = []
    while watcher.unread:
        sighting = watcher.unread.popleft()
        if sighting.record is not None:
            lines.append(_line(sighting.change, show(sighting.record)))
        elif bookmarks:
            lines.append(_bookmark(api, str(sighting.version)))
    return b"".join(lines)


def _line(change: Change, shown: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (change.encode(), shown)


def _bookmark(api: Api, version: str, annotations: dict[str, str] | None = None) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": version}
    if annotations:
        metadata["annotations"] = annotations
    mark = {"kind": api.kind, "apiVersion": api.api_version, "metadata": metadata}
    return _line(Change.BOOKMARK, msgspec.json.encode(mark))


def _shown(target: ApiTarget, request: web.Request) -> Show:
    """An object in the form of the answer: as it is, or as a table of one row, the first with headers."""
    maker = table_maker(target, request)
    if maker is None:
        return lambda record: record.encoded
    headers = iter((True,))

    def show(record: ObjectVersion) -> bytes:
        metadata = {"resourceVersion": str(record.version)}
        now = target.server.clock.wall()
        table = maker.table([record], metadata, now, headers=next(headers, False))
        return msgspec.json.encode(table)

    return show


async def get(target: ApiTarget, request: web.Request) -> web.Response:
    """Serve GET of an object, or of its status, which is returned within the whole object."""
    record = target.server.get(target.kind, target.name, target.namespace)
    return single_answer(target, request, record)


async def list_or_watch(target: ApiTarget, request: web.Request) -> web.StreamResponse:
    """Serve a list or a watch."""
    if flag(request, "watch"):
        return await watch(target, request)
    if request.query.get("resourceVersionMatch") == "Exact":
        raise BadRequest("a list shows the present: leave out resourceVersionMatch=Exact")
    listing = target.server.list(
        target.kind,
        target.selection(request),
        limit=number(request, "limit"),
        more=request.query.get("continue", ""),
    )
    return list_answer(target, request, listing)
