"""The objects an informer knows of, and the handlers it tells when they change.

Handlers are told in order, each object's `new` being its next `old`. An object that was deleted and made again under
its name is another object (another uid): handlers are told of a deletion and an addition, also when both happened
while the watch was interrupted.

Handlers are plain functions that run between two events: they note a key in a queue and return. One that raises is
logged, and the others are still called; only a broken invariant (StopError) goes to the caller.
"""

from collections.abc import Callable, Iterable
from typing import Generic

from podtide.cluster.port import R
from podtide.core.errors import StopError
from podtide.resources.base import Key
from podtide.runtime.logging import Logger

Handler = Callable[[R | None, R | None], None]
"""Called with (old, new): old is None for an object that is new, new is None for one that is gone."""


class ObjectCache(Generic[R]):
    """Objects by key. Handlers are called after the change, so that they read the new state."""

    def __init__(self, log: Logger) -> None:
        self._log = log
        self._items: dict[Key, R] = {}
        self._handlers: tuple[Handler[R], ...] = ()
        """Never changed, only replaced: a handler may add another while it is told."""

    def get(self, key: Key) -> R | None:
        """The object, or None."""
        return self._items.get(key)

    def items(self) -> list[R]:
        """All objects."""
        return list(self._items.values())

    def add_handler(self, handler: Handler[R]) -> None:
        """Call this handler with every change, and first with what is there already."""
        self._handlers = (*self._handlers, handler)
        for item in self.items():
            self._tell((handler,), None, item)

    def replace_all(self, items: Iterable[R]) -> None:
        """Replace the content by these objects: handlers hear first of those that are gone, then of the others."""
        before, self._items = self._items, {item.key: item for item in items}
        for key, old in before.items():
            if key not in self._items:
                self._tell(self._handlers, old, None)
        for key, new in self._items.items():
            self._tell_difference(before.get(key), new)

    def put(self, new: R) -> None:
        """Add or update the object."""
        key = new.key
        old = self._items.get(key)
        self._items[key] = new
        self._tell_difference(old, new)

    def remove(self, key: Key) -> None:
        """Remove the object."""
        old = self._items.pop(key, None)
        if old is not None:
            self._tell(self._handlers, old, None)

    def tell_again(self, key: Key, written: R) -> None:
        """Call handlers for an object that is unchanged, although a write had changed it: the write was undone."""
        there = self._items.get(key)
        self._tell(self._handlers, there or written, there)

    def _tell_difference(self, old: R | None, new: R) -> None:
        if old is None:
            self._tell(self._handlers, None, new)
        elif old.metadata.uid != new.metadata.uid:
            self._tell(self._handlers, old, None)
            self._tell(self._handlers, None, new)
        elif old.metadata.resource_version != new.metadata.resource_version or old != new:
            # One version of two contents: the server was restored from a backup, and gave the number out again.
            self._tell(self._handlers, old, new)

    def _tell(self, handlers: Iterable[Handler[R]], old: R | None, new: R | None) -> None:
        for handler in handlers:
            try:
                handler(old, new)
            except StopError:
                raise
            except Exception:  # noqa: BLE001 - whatever a handler does, the others must be told
                known = new or old
                self._log.exception(
                    "a handler failed", key=str(known.key) if known else "", handler=repr(handler)
                )
