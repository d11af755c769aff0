"""What keeps the page's state up to date: informers on a handful of kinds, and a poll of the allocator.

Pods are not among them: a cluster may have 150,000, and a page that is not looked at must cost next to nothing. Changes are gathered
for a moment before they are published, so that a burst is a few events and not thousands.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from podtide.allocator.port import Allocator
from podtide.allocator.quarantine import Quarantined
from podtide.cluster.informer import Informer, Scope
from podtide.cluster.port import Cluster, ClusterError, R, Unavailable
from podtide.controller.leadership import LEASE
from podtide.core.errors import PodtideError
from podtide.dashboard.page_state import PageState
from podtide.dashboard.records import PartHealth
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.lease import Lease
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.runtime import Runtime

GATHER_SECONDS = 0.2
_HEALTH_EVERY_SECONDS = 2.0
_ALLOCATOR_EVERY_SECONDS = 3.0
_PROBE_EVERY_SECONDS = 10.0
_ANSWER_SECONDS = 5.0
_MOST_QUARANTINE_PAGES = 20
_SYSTEM = Scope(namespace=SYSTEM_NAMESPACE)
_OF_THE_LEADER = Scope(namespace=LEASE.namespace, fields=f"metadata.name={LEASE.name}")


class PageFeed:
    """Keeps a PageState up to date while `run` runs, and wakes those who wait for changes."""

    def __init__(
        self, state: PageState, cluster: Cluster, allocator: Allocator | None, *, runtime: Runtime
    ) -> None:
        self.state = state
        self._cluster = cluster
        self._allocator = allocator
        self._runtime = runtime
        self._changed = asyncio.Event()
        """Replaced whenever something was published."""
        self._due = asyncio.Event()
        nodes, configs = self._informer(Node), self._informer(NodeNetworkConfig, _SYSTEM)
        subnets = self._informer(ClusterSubnet, _SYSTEM, can_do_without=True)
        states = self._informer(ClusterSubnetState, _SYSTEM, can_do_without=True)
        self._lease = self._informer(Lease, _OF_THE_LEADER)
        nodes.add_handler(
            self._then(lambda old, new: state.note_node(old, new, is_first=not nodes.synced.is_set()))
        )
        configs.add_handler(
            self._then(lambda old, new: state.note_config(old, new, is_first=not configs.synced.is_set()))
        )
        subnets.add_handler(self._then(state.note_subnet))
        states.add_handler(self._then(state.note_subnet_state))
        self._lease.add_handler(self._then(state.note_lease))
        self._lease.on_watch.append(state.note_lease_read)
        self._needed: tuple[Informer[Any], ...] = (nodes, configs, subnets, states)
        self._no_answer = ""

    async def run(self) -> None:
        """Follow the cluster and the allocator until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for informer in (*self._needed, self._lease):
                tasks.create_task(informer.run())
            tasks.create_task(self._keep_publishing())
            tasks.create_task(self._keep_looking())
            tasks.create_task(self._keep_probing())
            if self._allocator is not None:
                tasks.create_task(self._keep_asking(self._allocator))

    async def until_read(self, seconds: float) -> None:
        """Wait until the cluster was read, or this long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for informer in self._needed:
                    await informer.synced.wait()

    async def next_change(self, seconds: float) -> None:
        """Wait until something is published after this call, or this long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()

    def wake(self) -> None:
        """Publish what changed, in a moment."""
        self._due.set()

    def _informer(
        self, kind: type[R], scope: Scope | None = None, *, can_do_without: bool = False
    ) -> Informer[R]:
        return Informer(
            self._cluster, kind, scope or Scope(), runtime=self._runtime, can_do_without=can_do_without
        )

    def _then(self, handle: Callable[[R | None, R | None], None]) -> Callable[[R | None, R | None], None]:
        def handled(old: R | None, new: R | None) -> None:
            handle(old, new)
            self._due.set()

        return handled

    async def _keep_publishing(self) -> None:
        published = self.state.sequence
        while True:
            await self._due.wait()
            await asyncio.sleep(GATHER_SECONDS)
            self._due.clear()
            self.state.publish()
            if self.state.sequence != published:  # a client that connected may have published before
                published = self.state.sequence
                changed, self._changed = self._changed, asyncio.Event()
                changed.set()

    async def _keep_looking(self) -> None:
        """Look at what changes by time alone."""
        while True:
            self.state.note_api(self._api_health())
            self.state.renew_health()
            self._due.set()
            await asyncio.sleep(_HEALTH_EVERY_SECONDS)

    def _api_health(self) -> PartHealth:
        unread = [each.kind.api.kind for each in self._needed if not each.synced.is_set()]
        if self._no_answer:
            return PartHealth(ok=False, message=self._no_answer)
        if unread:
            return PartHealth(
                ok=False, message=f"the cluster is being read: {', '.join(unread)}s are missing"
            )
        return PartHealth(ok=True)

    async def _keep_probing(self) -> None:
        """A server that hangs leaves its watches open and silent, so it is asked for one object now and then."""
        while True:
            self._no_answer = await self._probe()
            await asyncio.sleep(_PROBE_EVERY_SECONDS)

    async def _probe(self) -> str:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await self._cluster.list(Node, limit=1)
        except TimeoutError:
            return "the API server does not answer: see that it is up"
        except Unavailable as error:
            return str(error)
        except ClusterError as error:
            return f"the cluster cannot be read: {error}"
        return ""

    async def _keep_asking(self, allocator: Allocator) -> None:
        while True:
            await self._ask(allocator)
            self._due.set()
            await asyncio.sleep(_ALLOCATOR_EVERY_SECONDS)

    async def _ask(self, allocator: Allocator) -> None:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                subnets = await allocator.list_subnets()
                self.state.note_allocator(subnets, PartHealth(ok=True))
                any_left = any(subnet.quarantined for subnet in subnets)
                self.state.note_quarantine(await _quarantined(allocator) if any_left else ())
        except TimeoutError:
            words = "the allocator does not answer: numbers are those of the cluster's objects"
            self.state.note_allocator((), PartHealth(ok=False, message=words))
        except PodtideError as error:
            self.state.note_allocator((), PartHealth(ok=False, message=str(error)))


async def _quarantined(allocator: Allocator) -> tuple[Quarantined, ...]:
    """What is in quarantine, as far as a few pages tell."""
    found: list[Quarantined] = []
    more = ""
    for _ in range(_MOST_QUARANTINE_PAGES):
        page = await allocator.quarantined(more=more)
        found += page.items
        more = page.more
        if not more:
            break
    return tuple(found)
