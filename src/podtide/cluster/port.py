"""The Cluster port: all that podtide asks of a Kubernetes API, and what it may rely on.

The docstrings here are the contract. One suite proves it for every adapter (`tests/cluster/contract`):
the embedded one, the embedded one served over HTTP, and a real kube-apiserver. Whatever stands on the port
(informer, work queue, leader election, controllers, agents) relies on nothing else.

Objects are the structs of `podtide.resources`; a kind is named by its struct: `await cluster.get(Pod, "web", "default")`.
Resource versions are opaque strings: hand them back, do not read them.
"""

from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from podtide.core.errors import FixError, PodtideError, RetryError
from podtide.resources.base import Resource

R = TypeVar("R", bound=Resource)


class ClusterError(PodtideError):
    """The API answered no, or did not answer. Every method of the port raises only these."""


class NotFound(ClusterError, FixError):
    """404: no such object (or no such kind)."""


class AlreadyExists(ClusterError, FixError):
    """409 on create: the name is taken."""


class Conflict(ClusterError, RetryError):
    """409 on write: a stale resourceVersion, another uid, or a field another manager owns. Read again, decide again."""


class Invalid(ClusterError, FixError):
    """400 or 422: the API server refuses the object or the request as it stands."""


class Forbidden(ClusterError, FixError):
    """401 or 403: the credential may not do this."""


class Gone(ClusterError, RetryError):
    """410: the resourceVersion or continue token is too old. List anew."""


class Throttled(ClusterError, RetryError):
    """429: come back after `retry_after_seconds`."""

    def __init__(self, message: str, retry_after_seconds: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(ClusterError, RetryError):
    """5xx, a time-out or no connection: whether a write took effect is unknown."""


class Change(StrEnum):
    """What a watch event says about its object, as seen through the watch's selector."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class WatchEvent(Struct, Generic[R], frozen=True):
    """One event. `item` is None exactly for a bookmark; a DELETED carries the object's last state.

    `resource_version` is where to resume: a watch from it misses nothing and repeats nothing.
    """

    change: Change
    item: R | None
    resource_version: str


class Page(Struct, Generic[R], frozen=True):
    """One page of a list. All pages of one list show the same instant, that of `resource_version`.

    `more` is the token for the next page, "" on the last.
    """

    items: list[R]
    resource_version: str
    more: str = ""


class Cluster(Protocol):
    """A Kubernetes API as podtide uses it."""

    async def get(self, kind: type[R], name: str, namespace: str = "") -> R:
        """The object as it is now, or NotFound. A read sees every write that was answered before it began."""
        ...

    async def list(  # noqa: PLR0913 - each narrows the answer in its own way, and all are Kubernetes' own
        self,
        kind: type[R],
        namespace: str = "",
        *,
        fields: str = "",
        labels: str = "",
        limit: int = 0,
        more: str = "",
    ) -> Page[R]:
        """The objects of one namespace, or of all when it is empty, ordered by namespace and name.

        `fields` and `labels` are selectors in Kubernetes' syntax, evaluated by the server; a field path the kind
        does not offer is Invalid. With `limit`, at most that many items and a token for the rest; a token that
        outlived the server's memory is Gone. A list without a token is as fresh as `get`.
        """
        ...

    def watch(
        self,
        kind: type[R],
        namespace: str = "",
        *,
        resource_version: str,
        fields: str = "",
        labels: str = "",
    ) -> AsyncIterator[WatchEvent[R]]:
        """Every change after `resource_version`, in order, each once, as seen through the selectors.

        An object that comes to match is ADDED, one that ceases to match is DELETED. Bookmarks come from time to
        time, so that an idle watch can resume. The iterator ends when the server closes the watch (resume from the
        last event's resource version), raises Gone when the version is too old, Unavailable when the connection
        broke. Close it (`contextlib.aclosing`) to stop watching.
        """
        ...

    async def create(self, item: R, *, manager: str) -> R:
        """Make the object; the answer carries uid, resourceVersion, generation 1 and creationTimestamp.

        AlreadyExists when the name is taken. For a kind with a status subresource the status sent is ignored.
        With `generate_name` and no name, the server makes one up.
        """
        ...

    async def replace(self, item: R, *, manager: str) -> R:
        """Put this object in place of the one there. What `item.original` held and no struct names is kept.

        With a resource version: Conflict unless it is the current one. With a uid: Conflict unless it is the same.
        NotFound when there is none. A write that changes nothing answers the object unchanged, with its old
        resource version, and no watch hears of it. `generation` grows by one when anything outside metadata and
        status changed. For a kind with a status subresource the status sent is ignored. Taking away the last
        finalizer of an object that is being deleted removes it.
        """
        ...

    async def replace_status(self, item: R, *, manager: str) -> R:
        """Like `replace`, but only `status` is taken, and `generation` stays."""
        ...

    async def apply(self, item: R, *, manager: str, force: bool = True) -> R:
        """Server-side apply: state all that `manager` wants, and nothing else.

        Fields the manager applied before and leaves out now are removed, unless another manager owns them too.
        Fields of others stay. Without `force`, a field another manager set to another value is Conflict; with it,
        the field changes hands. An item that carries a uid is never created: Conflict when no object with that
        uid is there. Without one, an absent object is created. Applying the same again changes nothing.
        """
        ...

    async def delete(
        self, kind: type[R], name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> None:
        """Ask that the object go. NotFound when there is none; Conflict when uid or resource version differ.

        With finalizers left it gets a deletionTimestamp (a MODIFIED event) and stays until the last is taken away;
        otherwise it is gone at once (DELETED). What it owned, and nobody else does, is collected in the background.
        """
        ...
