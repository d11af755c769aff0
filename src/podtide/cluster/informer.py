"""A local copy of some objects of the cluster, kept up to date, that tells its handlers of every change.

It lists once, then watches from there. Whatever breaks, it goes on where it was:

    the watch ended          resume from the last event or bookmark, at once; nothing is listed again
    Throttled                wait, then resume
    Unavailable              wait (see `backoff`: for a server that is away, 5 s at most), then list anew
    Gone                     list anew, and tell handlers the difference to what they were told before
    Forbidden, NotFound      logged, then as if unavailable: the right may be granted, or the kind installed, later;
                             an informer of an optional kind has synced, and is empty, after a few tries
    Invalid                  raised: a selector of ours that no server will ever accept

Events are taken in order and a list is as fresh as a read, so the copy never goes back in time; unless the server
itself did (an etcd restored from a backup). A server refuses to resume from a version that it has not reached, but once
it has written as many versions again, it accepts any of them as its own. A server is not restored while it serves: so a
watch is resumed at once, or not at all. After a broken connection, a pause or a long silence the objects are listed
anew, and when a version is told of that comes before those told of already; and that list counts, whatever its version.
(A server that restarts has forgotten what happened before, and makes every client list anew anyway.)
"""

import asyncio
import math
from collections.abc import Callable
from contextlib import aclosing
from typing import Generic, NoReturn

from msgspec import Struct

from podtide.cluster.backoff import Backoff, FailureStreak
from podtide.cluster.contact import Contact
from podtide.cluster.object_cache import Handler, ObjectCache
from podtide.cluster.port import (
    Change,
    Cluster,
    ClusterError,
    Gone,
    Invalid,
    NotFound,
    Page,
    R,
    Unavailable,
    WatchEvent,
)
from podtide.resources.base import Key
from podtide.runtime.runtime import Runtime

Listener = Callable[[], None]

_PAGE_ITEMS = 500
_ALL_IN_ONE = 0
_CALM_SECONDS = 10.0
"""A watch that lasted this long was a good one: what comes next does not count to an earlier streak of failures."""
_RESUMABLE_SECONDS = 30.0
"""How long ago the server must have been heard of for a watch to be resumed."""
_BROKEN = Backoff(floor_seconds=0.2, cap_seconds=30.0, first_ceiling_seconds=1.0)
"""For a watch that broke. Most do because a server was restarted, and another is there or it will be in a moment."""
_MISSING = Backoff(floor_seconds=1.0, cap_seconds=600.0)
"""For a kind that the server does not know and that can be done without: thousands of nodes may ask for it for ever."""
_TRIES_UNTIL_MISSING = 3
"""Where a kind was added a moment ago, a server may not know it yet."""


class Scope(Struct, frozen=True, kw_only=True):
    """The namespace (all, when empty) and selectors of an informer, which the server evaluates."""

    namespace: str = ""
    fields: str = ""
    labels: str = ""


EVERYTHING = Scope()


class Informer(Generic[R]):
    """A cache of the objects of one kind and scope. `run` keeps it up to date; reads never leave the process."""

    def __init__(
        self,
        cluster: Cluster,
        kind: type[R],
        scope: Scope = EVERYTHING,
        *,
        runtime: Runtime,
        can_do_without: bool = False,
    ) -> None:
        self.is_listing = False
        """Whether handlers are told of differences to a list: what happened in between is not known."""
        self.synced = asyncio.Event()
        """Set once handlers were told of everything that was there. Before that, absence means nothing."""
        self.watches = 0
        """How often a watch began. What is remembered from before, besides the copy, may be of another history: a server
        that went back no further than the copy has it resumed."""
        self.on_list: list[Listener] = []
        """Called whenever everything was listed, before handlers are told of differences: it may be another history."""
        self.on_watch: list[Listener] = []
        """Called whenever a watch begins, also where handlers have nothing to be told of."""
        self._cluster = cluster
        self.kind = kind
        self._scope = scope
        self._can_do_without = can_do_without
        self._randomness = runtime.randomness
        self._missed = 0
        self._log = runtime.log.bind(kind=kind.api.kind)
        self._cache = ObjectCache[R](self._log)
        self._failures = FailureStreak(_BROKEN, runtime.clock, runtime.randomness, calm_seconds=_CALM_SECONDS)
        self._endings = FailureStreak(_BROKEN, runtime.clock, runtime.randomness, calm_seconds=_CALM_SECONDS)
        """Watches that ended in good order, or whose version had expired. Counted apart: the first one after an outage
        has nothing to wait for."""
        self._contact = Contact(runtime.clock)
        self._complaint = ""
        self._resume_from = ""
        """The version that the copy shows; empty when the next step is to list."""
        self._expected: dict[Key, tuple[R, float]] = {}
        """What writes made that the copy does not show yet, each with the version from which on it does."""

    def silent_seconds(self) -> float:
        """Seconds since the last proven contact with the server (see `contact`); infinity before the first list."""
        return self._contact.silent_seconds()

    @property
    def is_watching(self) -> bool:
        """Whether a watch is open: a server that is stopped, as for a restore of its store, ends it."""
        return self._contact.is_watching

    def watched_seconds(self) -> float:
        """How long the present watch has been open; 0 while there is none."""
        return self._contact.watched_seconds()

    def get(self, key: Key) -> R | None:
        """The object in the cache, or None."""
        return self._cache.get(key)

    def items(self) -> list[R]:
        """All objects in the cache."""
        return self._cache.items()

    def add_handler(self, handler: Handler[R]) -> None:
        """Call this handler with every change (see `object_cache`)."""
        self._cache.add_handler(handler)

    def expect(self, item: R, *, is_deleted: bool = False) -> None:
        """Record what a write made of the object, or that it asked for its deletion: an event will follow.

        It will not if the server goes back to before the write and the copy has not seen it yet: then the copy is
        right all along, and no event says that the write is undone. So when a watch begins anew and does not show the
        write, handlers are told of the object once more.
        """
        version = math.inf if is_deleted else _number(item.metadata.resource_version)
        if self._known_version(item.key) < version:
            self._expected[item.key] = item, version

    async def run(self) -> NoReturn:
        """Keep the cache up to date until cancelled."""
        while True:
            delay_seconds = await self._follow_until_it_breaks()
            await asyncio.sleep(delay_seconds)

    async def _follow_until_it_breaks(self) -> float:
        """List if necessary, then watch. Returns how long to wait before the next attempt."""
        try:
            if self._contact.silent_seconds() > _RESUMABLE_SECONDS:
                self._resume_from = ""
            if not self._resume_from:
                await self._list()
            await self._watch()
        except Invalid:
            raise
        except Gone as error:
            self._log.info("watch expired: listing again", reason=str(error))
            self._resume_from = ""
            return self._delay_unless_calm(error)
        except ClusterError as error:
            self._complain(error)
            if isinstance(error, Unavailable):
                self._resume_from = ""
            if self._can_do_without and isinstance(error, NotFound):
                return self._do_without()
            return self._failures.delay_seconds(error)
        delay_seconds = self._delay_unless_calm()
        if delay_seconds:
            self._resume_from = ""
        return delay_seconds

    def _do_without(self) -> float:
        """Empty the cache, because the server does not know the kind. Returns how long to wait before asking again."""
        self._missed += 1
        if self._missed >= _TRIES_UNTIL_MISSING:
            self.synced.set()
        return _MISSING.delay_seconds(self._missed, self._randomness)

    def _delay_unless_calm(self, error: ClusterError | None = None) -> float:
        """The back-off after a watch ended or its version expired: only when that happens all the time."""
        was_calm = self._endings.is_over
        delay = self._endings.delay_seconds(error)
        return 0.0 if was_calm else delay

    def _complain(self, error: ClusterError) -> None:
        """Log a problem once, however long it lasts."""
        if str(error) != self._complaint:
            self._complaint = str(error)
            self._log.warning("cannot list or watch the cluster: retrying", error=str(error))

    async def _list(self) -> None:
        try:
            items, version = await self._read_pages(_PAGE_ITEMS)
        except Gone:
            # The server forgot the list's instant between two pages. In one answer there is nothing to forget.
            items, version = await self._read_pages(_ALL_IN_ONE)
        self._contact.heard()
        for tell in self.on_list:
            tell()
        self.is_listing = True
        self._cache.replace_all(items)
        self.is_listing = False
        self._resume_from = version
        self._complaint = ""
        self._missed = 0
        self.synced.set()

    async def _read_pages(self, limit: int) -> tuple[list[R], str]:
        page = await self._read_page(limit)
        items = list(page.items)
        while page.more:
            page = await self._read_page(limit, page.more)
            items += page.items
        return items, page.resource_version

    async def _read_page(self, limit: int, more: str = "") -> Page[R]:
        scope = self._scope
        return await self._cluster.list(
            self.kind, scope.namespace, fields=scope.fields, labels=scope.labels, limit=limit, more=more
        )

    async def _watch(self) -> None:
        scope = self._scope
        events = self._cluster.watch(
            self.kind,
            scope.namespace,
            resource_version=self._resume_from,
            fields=scope.fields,
            labels=scope.labels,
        )
        self._contact.watching()
        self.watches += 1
        for tell in self.on_watch:
            tell()
        self._tell_of_undone_writes()
        try:
            async with aclosing(events):
                async for event in events:
                    self._contact.heard()
                    self._take(event)
                    self._complaint = ""
            self._contact.heard()  # the server ended it in good order
        finally:
            self._contact.broken()

    def _tell_of_undone_writes(self) -> None:
        expected, self._expected = self._expected, {}
        for key, (item, version) in expected.items():
            if self._known_version(key) < version:
                self._cache.tell_again(key, item)

    def _known_version(self, key: Key) -> int:
        """The resourceVersion of the object in the cache; 0 when it is not there."""
        known = self._cache.get(key)
        return _number(known.metadata.resource_version) if known is not None else 0

    def _take(self, event: WatchEvent[R]) -> None:
        if _number(event.resource_version) < _number(self._resume_from):
            raise Gone(
                f"version {event.resource_version} comes after {self._resume_from}: the server went back"
            )
        if event.item is not None:
            key = event.item.key
            if event.change is Change.DELETED:
                self._expected.pop(key, None)
                self._cache.remove(key)
            else:
                self._cache.put(event.item)
                if key in self._expected and self._expected[key][1] <= self._known_version(key):
                    del self._expected[key]
        self._resume_from = event.resource_version


def _number(version: str) -> int:
    """A resourceVersion as a number; 0 when it is not one."""
    return int(version) if version.isdecimal() else 0
