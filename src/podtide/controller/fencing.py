"""Fencing: a leader whose term is over writes nothing. Calls and writes are counted here as well.

A process that got no CPU time for a while does not know that it was replaced: the first thing it does when it wakes up
may be the write it was about to make. So every write checks the term first, with nothing between check and call. Reads
are not checked.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from podtide.allocator.port import (
    AllocatedContainer,
    Allocator,
    Bounds,
    ContainerPage,
    Debt,
    MoveResult,
    QuarantinePage,
    Subnet,
    SubnetDemandReport,
    SubnetInForce,
    Wish,
)
from podtide.allocator.terms import HeldContainer, ShownAddresses
from podtide.cluster.informer import Informer
from podtide.cluster.port import AlreadyExists, Cluster, Conflict, NotFound, R
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
        self._cluster = cluster
        self._check = check
        self._counts = counts
        self._caches = {cache.kind: cache for cache in caches}

    def _expect(self, item: Resource, *, is_deleted: bool = False) -> None:
        if (cache := self._caches.get(type(item))) is not None:
            cache.expect(item, is_deleted=is_deleted)

    async def create(self, item: R) -> R:
        """Create the object; Conflict if it exists."""
        self._check()
        try:
            made = await self._cluster.create(item, manager=MANAGER)
        except AlreadyExists as error:
            raise Conflict(str(error)) from error
        self._counts[item.api.kind] += 1
        self._expect(made)
        return made

    async def replace(self, item: R) -> R:
        """Replace the version that this was made from; Conflict if there is another version, or none."""
        self._check()
        try:
            written = await self._cluster.replace(item, manager=MANAGER)
        except NotFound as error:
            raise Conflict(str(error)) from error
        self._counts[item.api.kind] += 1
        self._expect(written)
        return written

    async def replace_status(self, item: R) -> R:
        """Replace the status only; otherwise like `replace`."""
        self._check()
        try:
            written = await self._cluster.replace_status(item, manager=MANAGER)
        except NotFound as error:
            raise Conflict(str(error)) from error
        self._counts[f"{item.api.kind}/status"] += 1
        self._expect(written)
        return written

    async def delete(self, item: R, *, unchanged: bool = False) -> None:
        """Delete this object, by uid; it is no error if it is gone.

        With `unchanged`, only in the version at hand: Conflict if somebody has written it since.
        """
        self._check()
        place = item.metadata
        version = place.resource_version if unchanged else ""
        try:
            await self._cluster.delete(
                type(item), place.name, place.namespace, uid=place.uid, resource_version=version
            )
        except NotFound:
            return
        self._counts[item.api.kind] += 1
        self._expect(item, is_deleted=True)


class GuardedAllocator:
    """The calls of the allocator that the controller makes; those that change anything are made after the check.

    Where there is a term, wishes carry its cluster uid and the versions that the cluster has seen, and answers are
    noted there.
    """

    def __init__(
        self, allocator: Allocator, check: Check, counts: Counter[str], term: AllocatorTerm | None = None
    ) -> None:
        self._allocator = allocator
        self._check = check
        self._counts = counts
        self._term = term

    async def put_container(self, wish: Wish) -> AllocatedContainer:
        """State a wish, after the check, with the term's identity; the granted version is noted."""
        self._check()
        if self._term is None:
            self._counts["put_container"] += 1
            return await self._allocator.put_container(wish)
        wish = self._term.stamped(wish)
        self._counts["put_container"] += 1
        answer = await self._allocator.put_container(wish)
        self._term.see_answer(answer)
        return answer

    async def delete_container(self, container_id: str, *, cluster: str) -> None:
        """Delete a container, after the check, with the cluster's uid."""
        self._check()
        uid = ""
        if self._term is not None:
            self._term.check()
            uid = self._term.uid
        self._counts["delete_container"] += 1
        await self._allocator.delete_container(container_id, cluster=cluster, cluster_uid=uid)

    async def adopt_container(self, held: HeldContainer) -> tuple[str, ...]:
        """Report a container in a recovery, after the check."""
        self._check()
        self._counts["adopt_container"] += 1
        return await self._allocator.adopt_container(held)

    async def keep_for_pods(self, shown: ShownAddresses) -> int:
        """Report addresses that pods show in a recovery, after the check."""
        self._check()
        self._counts["keep_for_pods"] += 1
        return await self._allocator.keep_for_pods(shown)

    async def finish_report(self, cluster: str, *, cluster_uid: str, recovery: int) -> None:
        """End the report of a recovery, after the check."""
        self._check()
        self._counts["finish_report"] += 1
        await self._allocator.finish_report(cluster, cluster_uid=cluster_uid, recovery=recovery)

    async def move_container(self, wish: Wish) -> MoveResult:
        """State a wish and move what the machine left under a former uid, after the check; the granted version is noted."""
        self._check()
        if self._term is not None:
            wish = self._term.stamped(wish)
        self._counts["move_container"] += 1
        moved = await self._allocator.move_container(wish)
        if self._term is not None:
            self._term.see_answer(moved.container)
        return moved

    async def quarantined(self, *, cluster: str, node: str = "", more: str = "") -> QuarantinePage:
        """One page of what is in quarantine, without entries of clusters with another uid or with none.

        That no pod here shows such an address proves nothing of another cluster's pods, and the Node that could tell is
        deleted.
        """
        self._counts["quarantined"] += 1
        page = await self._allocator.quarantined(cluster=cluster, node=node, more=more)
        if self._term is None:
            return page
        uid = self._term.uid
        own = tuple(
            each for each in page.items if owner_of(each.cluster_uid, uid) is ContainerOwner.THIS_CLUSTER
        )
        for left in own:
            self._term.see_quarantined(left)
        return QuarantinePage(own, page.more)

    async def end_quarantine(
        self, container_id: str, addresses: tuple[str, ...], *, cluster: str, reason: str
    ) -> int:
        """Release addresses from quarantine, after the check, with the cluster's uid."""
        self._check()
        uid = ""
        if self._term is not None:
            self._term.check()
            uid = self._term.uid
        self._counts["end_quarantine"] += 1
        return await self._allocator.end_quarantine(
            container_id, addresses, cluster=cluster, cluster_uid=uid, reason=reason
        )

    async def get_container(self, container_id: str, *, cluster: str) -> AllocatedContainer:
        """Read a container; the call is counted."""
        self._counts["get_container"] += 1
        return await self._allocator.get_container(container_id, cluster=cluster)

    async def list_containers(self, *, cluster: str, more: str) -> ContainerPage:
        """Read one page of containers; the term notes their versions."""
        self._counts["list_containers"] += 1
        page = await self._allocator.list_containers(cluster=cluster, more=more)
        if self._term is not None:
            for container in page.items:
                self._term.see_answer(container)
        return page

    async def get_subnet(self, network: str, name: str) -> Subnet:
        """Read a subnet; the call is counted."""
        self._counts["get_subnet"] += 1
        return await self._allocator.get_subnet(network, name)

    async def list_subnets(self, network: str) -> tuple[Subnet, ...]:
        """Read the subnets of a network; the call is counted."""
        self._counts["list_subnets"] += 1
        return await self._allocator.list_subnets(network)

    async def owed(self, network: str, name: str) -> tuple[Debt, ...]:
        """Read which nodes are owed addresses, in their order; the call is counted."""
        self._counts["owed"] += 1
        return await self._allocator.owed(network, name)

    async def set_bounds(self, network: str, name: str, *, cluster: str, bounds: Bounds) -> None:
        """Set this cluster's bounds for the batch of a subnet, after the check."""
        self._check()
        self._counts["set_bounds"] += 1
        await self._allocator.set_bounds(network, name, cluster=cluster, bounds=bounds)

    async def demand(self, network: str, name: str) -> SubnetDemandReport:
        """Read the demand in a subnet; the call is counted."""
        self._counts["demand"] += 1
        return await self._allocator.demand(network, name)

    async def put_in_force(self, network: str, name: str, decided: SubnetInForce) -> Subnet:
        """Put a batch in force by compare-and-set, after the check."""
        self._check()
        self._counts["put_in_force"] += 1
        return await self._allocator.put_in_force(network, name, decided)
