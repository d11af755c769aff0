"""Nothing is written by a leader whose term is over, and what is done is counted.

A process that got no processor for a while does not know that it was replaced: the first thing it does when it wakes
up may be the write it was about to make. So every write asks the term first, with nothing between question and call.
Reading is free.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from podtide.allocator.port import (
    Allocator,
    Bounds,
    Container,
    ContainerPage,
    Debt,
    InForce,
    Moved,
    QuarantinePage,
    Subnet,
    SubnetDemand,
    Wish,
)
from podtide.allocator.terms import HeldContainer, ShownAddresses
from podtide.cluster.informer import Informer
from podtide.cluster.port import AlreadyExists, Cluster, Conflict, NotFound, R
from podtide.controller.allocator_term import AllocatorTerm
from podtide.core.subnet.cluster_identity import Owner, owner_of
from podtide.resources.base import Resource

Check = Callable[[], None]
"""Raises when this process may not act."""

MANAGER = "podtide-controller"
"""The field manager of everything the controller writes."""


def unguarded() -> None:
    """For a controller that is known to be the only one."""


class GuardedWrites:
    """Writes to the cluster, each after the check.

    The controller writes what it decided from a copy. Where the copy was behind, the object being there already or
    no longer is the same news as a stale version: Conflict, so that it is looked at again soon.
    """

    def __init__(
        self, cluster: Cluster, check: Check, counts: Counter[str], caches: Iterable[Informer[Any]] = ()
    ) -> None:
        """`caches` are told what to expect, each of its own kind."""
        self._cluster = cluster
        self._check = check
        self._counts = counts
        self._caches = {cache.kind: cache for cache in caches}

    def _expect(self, item: Resource, *, is_deleted: bool = False) -> None:
        if (cache := self._caches.get(type(item))) is not None:
            cache.expect(item, is_deleted=is_deleted)

    async def create(self, item: R) -> R:
        """Make the object; Conflict when it is there."""
        self._check()
        try:
            made = await self._cluster.create(item, manager=MANAGER)
        except AlreadyExists as error:
            raise Conflict(str(error)) from error
        self._counts[item.api.kind] += 1
        self._expect(made)
        return made

    async def replace(self, item: R) -> R:
        """Put this in place of the version it was made from; Conflict when that is not there any more."""
        self._check()
        try:
            written = await self._cluster.replace(item, manager=MANAGER)
        except NotFound as error:
            raise Conflict(str(error)) from error
        self._counts[item.api.kind] += 1
        self._expect(written)
        return written

    async def replace_status(self, item: R) -> R:
        """Like `replace`, of the status alone."""
        self._check()
        try:
            written = await self._cluster.replace_status(item, manager=MANAGER)
        except NotFound as error:
            raise Conflict(str(error)) from error
        self._counts[f"{item.api.kind}/status"] += 1
        self._expect(written)
        return written

    async def delete(self, item: R, *, unchanged: bool = False) -> None:
        """Ask that this very object go; one that is not there has gone already.

        With `unchanged`, only in the version at hand: Conflict when somebody has written it since.
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
    """What the controller asks of the allocator; what changes anything there, after the check."""

    def __init__(
        self, allocator: Allocator, check: Check, counts: Counter[str], term: AllocatorTerm | None = None
    ) -> None:
        self._allocator = allocator
        self._check = check
        self._counts = counts
        self._term = term

    async def put_container(self, wish: Wish) -> Container:
        """See `Allocator`."""
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
        """See `Allocator`."""
        self._check()
        uid = ""
        if self._term is not None:
            self._term.check()
            uid = self._term.uid
        self._counts["delete_container"] += 1
        await self._allocator.delete_container(container_id, cluster=cluster, cluster_uid=uid)

    async def adopt_container(self, held: HeldContainer) -> tuple[str, ...]:
        """See `Allocator`."""
        self._check()
        self._counts["adopt_container"] += 1
        return await self._allocator.adopt_container(held)

    async def keep_for_pods(self, shown: ShownAddresses) -> int:
        """See `Allocator`."""
        self._check()
        self._counts["keep_for_pods"] += 1
        return await self._allocator.keep_for_pods(shown)

    async def finish_report(self, cluster: str, *, cluster_uid: str, recovery: int) -> None:
        """See `Allocator`."""
        self._check()
        self._counts["finish_report"] += 1
        await self._allocator.finish_report(cluster, cluster_uid=cluster_uid, recovery=recovery)

    async def move_container(self, wish: Wish) -> Moved:
        """See `Allocator`."""
        self._check()
        if self._term is not None:
            wish = self._term.stamped(wish)
        self._counts["move_container"] += 1
        moved = await self._allocator.move_container(wish)
        if self._term is not None:
            self._term.see_answer(moved.container)
        return moved

    async def quarantined(self, *, cluster: str, node: str = "", more: str = "") -> QuarantinePage:
        """See `Allocator`; what a cluster with another uid, or with none, left under the name is not this one's to judge.

        That no pod here shows it proves nothing of another cluster's pods, and the Node by which it could be known is gone.
        """
        self._counts["quarantined"] += 1
        page = await self._allocator.quarantined(cluster=cluster, node=node, more=more)
        if self._term is None:
            return page
        uid = self._term.uid
        own = tuple(each for each in page.items if owner_of(each.cluster_uid, uid) is Owner.THIS_CLUSTER)
        for left in own:
            self._term.see_quarantined(left)
        return QuarantinePage(own, page.more)

    async def end_quarantine(
        self, container_id: str, addresses: tuple[str, ...], *, cluster: str, reason: str
    ) -> int:
        """See `Allocator`."""
        self._check()
        uid = ""
        if self._term is not None:
            self._term.check()
            uid = self._term.uid
        self._counts["end_quarantine"] += 1
        return await self._allocator.end_quarantine(
            container_id, addresses, cluster=cluster, cluster_uid=uid, reason=reason
        )

    async def get_container(self, container_id: str, *, cluster: str) -> Container:
        """See `Allocator`."""
        self._counts["get_container"] += 1
        return await self._allocator.get_container(container_id, cluster=cluster)

    async def list_containers(self, *, cluster: str, more: str) -> ContainerPage:
        """See `Allocator`."""
        self._counts["list_containers"] += 1
        page = await self._allocator.list_containers(cluster=cluster, more=more)
        if self._term is not None:
            for container in page.items:
                self._term.see_answer(container)
        return page

    async def get_subnet(self, network: str, name: str) -> Subnet:
        """See `Allocator`."""
        self._counts["get_subnet"] += 1
        return await self._allocator.get_subnet(network, name)

    async def list_subnets(self, network: str) -> tuple[Subnet, ...]:
        """See `Allocator`."""
        self._counts["list_subnets"] += 1
        return await self._allocator.list_subnets(network)

    async def owed(self, network: str, name: str) -> tuple[Debt, ...]:
        """See `Allocator`."""
        self._counts["owed"] += 1
        return await self._allocator.owed(network, name)

    async def set_bounds(self, network: str, name: str, *, cluster: str, bounds: Bounds) -> None:
        """See `Allocator`."""
        self._check()
        self._counts["set_bounds"] += 1
        await self._allocator.set_bounds(network, name, cluster=cluster, bounds=bounds)

    async def demand(self, network: str, name: str) -> SubnetDemand:
        """See `Allocator`."""
        self._counts["demand"] += 1
        return await self._allocator.demand(network, name)

    async def put_in_force(self, network: str, name: str, decided: InForce) -> Subnet:
        """See `Allocator`."""
        self._check()
        self._counts["put_in_force"] += 1
        return await self._allocator.put_in_force(network, name, decided)
