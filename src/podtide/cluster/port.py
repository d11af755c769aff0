"""The Cluster port: all that podtide asks of a Kubernetes API, and what it may rely on.

The docstrings here are the contract. One suite proves it for every adapter (`tests/cluster/contract`):
the embedded one, the embedded one served over HTTP, and a real kube-apiserver. Whatever stands on the port
(informer, work queue, leader election, controllers, agents) relies on nothing else.

Objects are the structs of `podtide.resources`; a kind is named by its struct: `await cluster.get(Pod, "web", "default")`.
Resource versions are opaque strings: hand them back, do not read them.
"""

from collections.abc import AsyncGenerator, Mapping
from enum import StrEnum
from typing import Any, Generic, Protocol, TypedDict, TypeVar, Unpack

from msgspec import Struct

from podtide.core.errors import FixError, PodtideError, RetryError
from podtide.resources.base import Resource

R = TypeVar("R", bound=Resource)


class ClusterError(PodtideError):
    """The API refused, or did not answer. Every method of the port raises only these."""


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
    """429: retry after `retry_after_seconds`."""

    def __init__(self, message: str, retry_after_seconds: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Unavailable(ClusterError, RetryError):
    """5xx, a time-out or no connection: whether a write took effect is unknown."""


class Change(StrEnum):
    """The type of a watch event, as seen through the watch's selector."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class WatchEvent(Struct, Generic[R], frozen=True):
    """One event. `item` is None exactly for a bookmark; a DELETED carries the object's last state.

    `resource_version` is where to resume: a watch from it misses nothing and repeats nothing. It is the item's own, also
    for a DELETED one.
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


class Selectors(TypedDict, total=False):
    """Which objects a list or a watch shows, in Kubernetes' syntax; "" for all."""

    fields: str
    labels: str


class Patch(Struct, Generic[R], frozen=True):
    """Which object is changed, and how. What is "" is not compared."""

    kind: type[R]
    name: str
    changes: Mapping[str, Any]
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    status: bool = False
    """Whether it is the status alone that changes."""


class DeletePreconditions(Struct, frozen=True, kw_only=True):
    """The preconditions of a delete, and its grace period."""

    uid: str = ""
    resource_version: str = ""
    grace_seconds: int | None = None
    """For pods on a node."""


DELETE = DeletePreconditions()


class Cluster(Protocol):
    """A Kubernetes API as podtide uses it.

    A namespaced kind needs a namespace, except that `list` and `watch` take all when it is empty; a cluster-scoped kind
    has none. Otherwise the request is Invalid. Whatever a caller does to an object it was given, the cluster does not
    change by it (watchers may be given the same one, so treat it as a value).
    """

    async def get(self, kind: type[R], name: str, namespace: str = "") -> R:
        """The object as it is now, or NotFound. A read sees every write that was answered before it began."""
        ...

    async def list(
        self, kind: type[R], namespace: str = "", *, limit: int = 0, more: str = "", **by: Unpack[Selectors]
    ) -> Page[R]:
        """The objects of one namespace, or of all when it is empty, ordered by `namespace/name` as one text.

        `fields` and `labels` are selectors in Kubernetes' syntax, evaluated by the server; a field path the kind
        does not offer is Invalid, and so is an invalid selector. With `limit`, at most that many items and a token for
        the rest, to be asked for with the same selectors; a token that outlived the server's memory is Gone, and what is
        no token is Invalid. A list without a token is as fresh as `get`.
        """
        ...

    def watch(
        self, kind: type[R], namespace: str = "", *, resource_version: str, **by: Unpack[Selectors]
    ) -> AsyncGenerator[WatchEvent[R], None]:
        """Every change after `resource_version`, in order, each once, as seen through the selectors.

        The version is that of a list, or of an earlier event of such a watch; what is none is Invalid. An object that
        comes to match is ADDED, one that ceases to match is DELETED (and carries its state from when it last matched).
        Bookmarks come from time to time, so that an idle watch can resume. The iterator ends when the server closes the
        watch (resume from the last event's resource version), raises Gone when the version is too old (or ahead of the
        server's own, as after a backup was put back), Unavailable when the connection broke. The server is asked when
        the first event is awaited. Close the iterator (`contextlib.aclosing`) to stop watching.
        """
        ...

    async def create(self, item: R, *, manager: str) -> R:
        """Create the object; the answer carries uid, resourceVersion, generation 1 and creationTimestamp.

        (Generations are counted for pods and custom resources, not for Nodes, Leases and Events.) AlreadyExists when
        the name is taken. An item that carries a resource version is Invalid, and so is one that its kind's schema
        does not allow; a uid is ignored. For a kind with a status subresource the status sent is ignored, except that
        a Node's is taken; a pod starts as Pending. With `generate_name` and no name, the server makes one up.
        """
        ...

    async def replace(self, item: R, *, manager: str) -> R:
        """Update the object. What `item.original` had and no struct names is kept.

        With a resource version: Conflict unless it is the current one; without: Invalid for custom resources and
        Leases, while Pods, Nodes and Events are overwritten as they are. With a uid: Conflict unless it is the same.
        NotFound when there is none, except that a Lease or Event that carries no uid is created (and with one it is
        Conflict). A write that changes nothing answers the object unchanged, with its old resource version, and no
        watch hears of it. `generation` grows by one when anything outside metadata and status changed; for a custom
        resource without a status subresource, status counts too. For a kind with a status subresource the status sent
        is ignored. Taking away the last finalizer of an object that is being deleted removes it; adding one to such
        an object is Invalid.
        """
        ...

    async def replace_status(self, item: R, *, manager: str) -> R:
        """Like `replace`, but only `status` is taken, and `generation` stays. NotFound for a kind without that."""
        ...

    async def apply(self, item: R, *, manager: str, force: bool = True) -> R:
        """Server-side apply: state all that `manager` wants, and nothing else.

        Fields the manager applied before and leaves out now are removed, unless another manager owns them too.
        Fields of others stay. Without `force`, a field another manager set to another value is Conflict; with it,
        the field changes hands. The manager of a create or replace owns what that changed, and counts as another
        manager than one that applies under the same name. Objects and maps are owned field by field, lists as a whole,
        unless the kind's CRD makes one a map (conditions, by type). An item that carries a uid is never created:
        Conflict when no object with that uid is there. Without one, an absent object is created. With a resource
        version: Conflict unless it is the current one, if there is an object. For a kind with a status subresource the
        status is ignored. Applying the same again changes nothing.
        """
        ...

    async def patch(self, patch: Patch[R], *, manager: str) -> R:
        """Merge its changes into the object as it is now: a JSON merge patch (RFC 7396).

        What is stated is put in, None removes a field, and a list is replaced whole. All other fields stay, those
        included that no struct names. NotFound when there is no such object: a patch never creates one. Conflict when
        uid or resource version differ; without a resource version it applies to whichever version is current. The
        outcome must be a valid object of the same name, else Invalid. Otherwise it is like `replace`: a patch that
        changes nothing answers the object unchanged, the manager owns what it changed, and changes to the status of a
        kind with a status subresource are ignored.

        With `status`, only the status changes, and `generation` stays: changes of anything else are Invalid, and a kind
        without a status subresource is NotFound. The uid of a custom resource is Invalid there unless it comes with a
        resource version, which decides: API servers do not compare that uid.
        """
        ...

    async def delete(
        self, kind: type[R], name: str, namespace: str = "", *, uid: str = "", resource_version: str = ""
    ) -> None:
        """Delete the object. NotFound when there is none; Conflict when uid or resource version differ.

        With finalizers left it gets a deletionTimestamp (a MODIFIED event, and `generation` grows by one) and stays
        until the last is taken away; otherwise it is gone at once (DELETED). Asking again changes nothing. A pod that
        is bound to a node is only marked, too, until its phase is Succeeded or Failed: then a delete removes it. What
        the object owned, and no other object does, is collected in the background, and so is what names only owners
        that never existed; where other owners are left, a deleted owner is removed from ownerReferences.
        """
        ...
