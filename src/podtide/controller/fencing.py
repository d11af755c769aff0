"""Fencing: a leader whose term is over writes nothing. Writes to the cluster are counted here as well.

A process that got no CPU time for a while does not know that it was replaced: the first thing it does when it wakes up
may be the write it was about to make. So every write checks the term first, with nothing between check and call. Reads
are not checked.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Unpack

from podtide.allocator.containers import AllocatedContainer, ContainerFilter, ContainerPage, MoveResult, Wish
from podtide.allocator.interceptor import AllocatorInterceptor, AllocatorOperation, T
from podtide.allocator.port import Allocator
from podtide.allocator.quarantine import QuarantineFilter, QuarantinePage
from podtide.cluster.informer import Informer
from podtide.cluster.port import AlreadyExists, Cluster, ClusterError, Conflict, NotFound, Patch, R
from podtide.controller.allocator_term import AllocatorTerm
from podtide.core.subnet.cluster_identity import ContainerOwner, owner_of
from podtide.resources.base import Resource

Check = Callable[[], None]
"""Raises if this process may not act."""

MANAGER = "podtide-controller"
"""The field manager of everything the controller writes."""


def unguarded() -> None:
    """The check of a controller that is known to be the only one: it never raises."""


class GuardedWrites:
    """Writes to the cluster, each after the check.

    The controller writes what it decided from a cache. If the cache was stale, an object that exists already or no
    longer is the same as a stale version: Conflict, so that it is reconciled again soon.
    """

    def __init__(
        self, cluster: Cluster, check: Check, counts: Counter[str], caches: Iterable[Informer[Any]] = ()
    ) -> None:
        """`caches` are told of each successful write of their kind."""
        self.cluster = cluster
        """For reads, which need no check."""
        self._check = check
        self._counts = counts
        self._caches = {cache.kind: cache for cache in caches}

    def _expect(self, item: Resource, *, is_deleted: bool = False) -> None:
        if (cache := self._caches.get(type(item))) is not None:
            cache.expect(item, is_deleted=is_deleted)

    async def create(self, item: R) -> R:
        """Create the object; Conflict if it exists."""
        return await self._write(self.cluster.create, item, AlreadyExists, item.api.kind)

    async def replace(self, item: R) -> R:
        """Replace the version that this was made from; Conflict if there is another version, or none."""
        return await self._write(self.cluster.replace, item, NotFound, item.api.kind)

    async def replace_status(self, item: R) -> R:
        """Replace the status only; otherwise like `replace`."""
        return await self._write(self.cluster.replace_status, item, NotFound, f"{item.api.kind}/status")

    async def patch(
        self, item: R, changes: Mapping[str, Any], *, status: bool = False, unchanged: bool = False
    ) -> R:
        """Merge changes into this object, by uid, or with `status` into its status alone; Conflict if it is gone.

        With `unchanged`, only in the version at hand: a list such as a Node's taints is replaced whole, and what
        somebody has added to it since would be lost.
        """
        place = item.metadata

        async def write(item: R, *, manager: str) -> R:
            return await self.cluster.patch(
                Patch(
                    type(item),
                    place.name,
                    namespace=place.namespace,
                    changes=changes,
                    uid=place.uid,
                    resource_version=place.resource_version if unchanged else "",
                    status=status,
                ),
                manager=manager,
            )

        counted = f"{item.api.kind}/status" if status else item.api.kind
        return await self._write(write, item, NotFound, counted)

    async def _write(
        self, write: Callable[..., Awaitable[R]], item: R, stale: type[ClusterError], counted: str
    ) -> R:
        self._check()
        try:
            written = await write(item, manager=MANAGER)
        except stale as error:
            raise Conflict(str(error)) from error
        self._counts[counted] += 1
        self._expect(written)
        return written

    async def delete(self, item: R, *, unchanged: bool = False) -> None:
        """Delete this object, by uid; an object that is gone already is not an error.

        With `unchanged`, only in the version at hand: Conflict if somebody has written it since.
        """
        self._check()
        place = item.metadata
        version = place.resource_version if unchanged else ""
        try:
            await self.cluster.delete(
                type(item), place.name, place.namespace, uid=place.uid, resource_version=version
            )
        except NotFound:
            return
        self._counts[item.api.kind] += 1
        self._expect(item, is_deleted=True)


class GuardedAllocator(AllocatorInterceptor):
    """The allocator as the controller calls it: a call that changes anything is checked first.

    Where there is a term, wishes carry its cluster uid and the versions that the cluster has seen, and answers are
    noted there.
    """

    def __init__(self, allocator: Allocator, check: Check, term: AllocatorTerm | None = None) -> None:
        super().__init__(allocator)
        self._check = check
        self._term = term

    async def intercept(self, request: AllocatorOperation[T]) -> T:
        """Check and call."""
        if not request.is_read:
            self._check()
        return await request.send(self._inner)

    async def put_container(self, wish: Wish) -> AllocatedContainer:
        """State a wish with the term's identity; the granted version is noted."""
        return self._seen(await super().put_container(self._stamped(wish)))

    async def move_container(self, wish: Wish) -> MoveResult:
        """State a wish and move what the machine left under a former uid; the granted version is noted."""
        moved = await super().move_container(self._stamped(wish))
        self._seen(moved.container)
        return moved

    async def delete_container(self, container_id: str, *, cluster: str, cluster_uid: str = "") -> None:
        """Delete a container, with the cluster's uid."""
        uid = cluster_uid or self._uid()
        await super().delete_container(container_id, cluster=cluster, cluster_uid=uid)

    async def end_quarantine(
        self,
        container_id: str,
        addresses: tuple[str, ...],
        *,
        cluster: str,
        cluster_uid: str = "",
        reason: str,
    ) -> int:
        """Release addresses from quarantine, with the cluster's uid."""
        uid = cluster_uid or self._uid()
        return await super().end_quarantine(
            container_id, addresses, cluster=cluster, cluster_uid=uid, reason=reason
        )

    async def quarantined(self, **narrowed: Unpack[QuarantineFilter]) -> QuarantinePage:
        """One page of what is in quarantine, without entries of clusters with another uid or with none.

        That no pod here shows such an address proves nothing of another cluster's pods, and the Node that could tell is
        deleted.
        """
        page = await super().quarantined(**narrowed)
        if self._term is None:
            return page
        uid = self._term.uid
        own = tuple(
            each for each in page.items if owner_of(each.cluster_uid, uid) is ContainerOwner.THIS_CLUSTER
        )
        for left in own:
            self._term.see_quarantined(left)
        return QuarantinePage(own, page.more)

    async def list_containers(self, **narrowed: Unpack[ContainerFilter]) -> ContainerPage:
        """Read one page of containers; the term notes their versions."""
        page = await super().list_containers(**narrowed)
        for container in page.items:
            self._seen(container)
        return page

    def _seen(self, container: AllocatedContainer) -> AllocatedContainer:
        if self._term is not None:
            self._term.see_answer(container)
        return container

    def _stamped(self, wish: Wish) -> Wish:
        self._check()
        return wish if self._term is None else self._term.stamped(wish)

    def _uid(self) -> str:
        self._check()
        if self._term is None:
            return ""
        self._term.check()
        return self._term.uid
