"""What `podtide top` follows while it is on the screen: the cluster's objects by informers, and the allocator by polling.

A cluster is listed once and then watched: an hour of `top` costs it little more than one look. But a server that hangs
leaves its watches open and silent, as one does where nothing happens. So it is asked for one object now and then, and a
missing answer is shown.
"""

import asyncio
import io
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from podtide.allocator.errors import AllocatorError
from podtide.allocator.port import Allocator
from podtide.allocator.subnets import Subnet
from podtide.cli.observed.network import NetworkObjects, observe_networks
from podtide.cli.observed.node import observe_nodes
from podtide.cli.top.overview import Overview, ReservedBy, TopReading
from podtide.cli.top.view import EVERYTHING as EVERYTHING_SHOWN
from podtide.cli.top.view import TopView, view_of
from podtide.cluster.informer import EVERYTHING, Informer, Scope
from podtide.cluster.port import Cluster, ClusterError, R, Unavailable
from podtide.cluster.served.ages import age
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.pod import Pod
from podtide.runtime.clock import Clock, SystemClock
from podtide.runtime.logging import make_logger
from podtide.runtime.randomness import system_randomness
from podtide.runtime.runtime import Runtime

_SETTLED_SECONDS = 5.0
"""After so long a watch counts as open, because connections that fail do so earlier. Shorter gaps are not reported."""
_PROBE_EVERY_SECONDS = 10.0
_PROBE_SECONDS = 5.0
"""How long the server may take to answer for one object."""
_SYSTEM = Scope(namespace=SYSTEM_NAMESPACE)


class WatchedCluster:
    """The objects of a cluster, which `run` keeps up to date."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock | None = None,
        *,
        namespace: str = SYSTEM_NAMESPACE,
        view: TopView = EVERYTHING_SHOWN,
    ) -> None:
        """`namespace` is that of the pools of secondary networks."""
        self._cluster = cluster
        self._namespace = namespace
        self._view = view
        self._networks: WatchedNetworks | None = None
        self._clock = clock or SystemClock()
        self._said: dict[str, io.StringIO] = {}
        self._pods = self._informer(Pod, EVERYTHING)
        self._configs = self._informer(NodeNetworkConfig, _SYSTEM)
        self._subnets = self._informer(ClusterSubnet, _SYSTEM)
        self._states = self._informer(ClusterSubnetState, _SYSTEM)
        self._informers: dict[str, Informer[Any]] = {
            Pod.api.kind: self._pods,
            NodeNetworkConfig.api.kind: self._configs,
            ClusterSubnet.api.kind: self._subnets,
            ClusterSubnetState.api.kind: self._states,
        }
        self._in_contact_at = dict.fromkeys(self._informers, self._clock.monotonic())
        self._answered_at = self._clock.monotonic()
        self._no_answer = ""

    async def run(self) -> None:
        """Watch the cluster until cancelled."""
        self._networks = await self._find_networks()
        async with asyncio.TaskGroup() as tasks:
            for informer in (*self._informers.values(), *self._networks.informers()):
                tasks.create_task(informer.run())
            tasks.create_task(self._keep_probing())

    async def _find_networks(self) -> "WatchedNetworks":
        """Informers of those kinds of secondary networks that the cluster knows and the credential may read."""
        found: dict[type[Any], Informer[Any]] = {}
        for kind, scope in (
            (NetworkAttachmentDefinition, EVERYTHING),
            (IPPool, Scope(namespace=self._namespace)),
            (NodeSlicePool, Scope(namespace=self._namespace)),
        ):
            with suppress(ClusterError):
                await self._cluster.list(kind, scope.namespace, limit=1)
                found[kind] = self._informer(kind, scope)
        return WatchedNetworks(found)

    async def _keep_probing(self) -> None:
        while True:
            await asyncio.sleep(_PROBE_EVERY_SECONDS)
            await self._probe()

    async def _probe(self) -> None:
        """Check whether the server answers; a refusal is an answer too."""
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                await self._cluster.list(ClusterSubnet, SYSTEM_NAMESPACE, limit=1)
        except TimeoutError:
            self._no_answer = "the API server does not answer: see that it is up"
            return
        except Unavailable as error:
            self._no_answer = str(error)
            return
        except ClusterError:
            pass
        self._answered_at, self._no_answer = self._clock.monotonic(), ""

    def overview(self, at_allocator: Iterable[Subnet] = ()) -> Overview | None:
        """The overview; None until all informers have synced."""
        if self._networks is None:
            return None
        informers = (*self._informers.values(), *self._networks.informers())
        if not all(informer.synced.is_set() for informer in informers):
            return None
        nodes = observe_nodes(self._configs.items(), self._pods.items())
        networks = observe_networks(self._networks.objects(), (), ())
        reading = TopReading(nodes, self._subnets.items(), self._states.items(), at_allocator, networks)
        return view_of(self._view, reading)

    def complaint(self) -> str:
        """What is wrong now, and for how long; "" as soon as it is over.

        Informers log an error once, however long it lasts, and not when it is over: that follows from their watches.
        """
        now = self._clock.monotonic()
        for kind, informer in self._informers.items():
            if informer.silent_seconds() == 0 or informer.watched_seconds() >= _SETTLED_SECONDS:
                self._in_contact_at[kind] = now
        silent = {kind: now - since for kind, since in self._in_contact_at.items()}
        kind = max(silent, key=lambda each: silent[each])
        lines = self._said[kind].getvalue().splitlines()
        if silent[kind] < _SETTLED_SECONDS or not lines:
            return (
                f"all as of {age(now - self._answered_at)} ago: {self._no_answer}" if self._no_answer else ""
            )
        error = msgspec.json.decode(lines[-1], type=_LoggedError).error
        return f"{kind}s as of {age(silent[kind])} ago: {error}"

    def _informer(self, kind: type[R], scope: Scope) -> Informer[R]:
        self._said[kind.api.kind] = io.StringIO()
        return Informer(
            self._cluster,
            kind,
            scope,
            runtime=Runtime(
                clock=self._clock,
                randomness=system_randomness(),
                log=make_logger(self._said[kind.api.kind], self._clock, level="warning"),
            ),
        )


class WatchedNetworks:
    """Objects of secondary networks, of those kinds that the cluster knows."""

    def __init__(self, informers: dict[type[Any], Informer[Any]]) -> None:
        self._informers = informers

    def informers(self) -> tuple[Informer[Any], ...]:
        """What keeps them up to date."""
        return tuple(self._informers.values())

    def objects(self) -> NetworkObjects:
        """The objects as they are now. Reservations are left out: nothing that is shown depends on them."""
        return NetworkObjects(
            attachments=self._items(NetworkAttachmentDefinition),
            pools=self._items(IPPool),
            slice_pools=self._items(NodeSlicePool),
        )

    def _items(self, kind: type[R]) -> tuple[R, ...]:
        informer = self._informers.get(kind)
        return tuple(informer.items()) if informer else ()


class _LoggedError(Struct):
    """The part that is read of a line of the informers' log."""

    error: str = ""


class PolledAllocator:
    """The allocator's last answer. Without an allocator there is none, and no error."""

    def __init__(self, allocator: Allocator | None, flag: str = "--allocator") -> None:
        self.subnets: tuple[Subnet, ...] = ()
        """Empty while it does not answer: an old number would look like a present one."""
        self.complaint = ""
        """Why it does not answer now."""
        self._allocator = allocator
        self._flag = flag
        """The option that says where it is."""
        self._has_answered = False

    def trouble(self, overview: Overview | None) -> str:
        """Why RESERVED is not the allocator's number, for all or for some subnets; "" if it is."""
        if self.complaint or not self._has_answered or overview is None:
            return self.complaint
        unknown = sorted(
            line.name for line in overview.subnets if line.reserved_by is not ReservedBy.ALLOCATOR
        )
        if not unknown:
            return ""
        which = f"subnet {unknown[0]}" if len(unknown) == 1 else f"subnets {', '.join(unknown)}"
        return f"RESERVED of {which} is what objects show: the allocator has none of the name; correct {self._flag}"

    async def run(self, interval_seconds: float) -> None:
        """Poll until cancelled."""
        while True:
            await self.ask()
            await asyncio.sleep(interval_seconds)

    async def ask(self) -> None:
        """Ask once."""
        if self._allocator is None:
            return
        try:
            self.subnets, self.complaint = await self._allocator.list_subnets(), ""
            self._has_answered = True
        except AllocatorError as error:
            self.subnets, self.complaint = (), f"RESERVED is what objects show: {error}"
