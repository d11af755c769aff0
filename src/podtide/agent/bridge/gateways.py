"""Keeps on the node's bridge the gateway of every CIDR that the node's addresses are in.

A pod must not start while its gateway is missing. So the network is not installed before the gateways are in place
(`in_place`), and an ADD is not answered before the gateway of its address is (`require`). What is deleted by hand, the
bridge itself included, is restored as soon as the kernel reports it.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import NoReturn

from msgspec import Struct

from podtide.agent.bridge.forwarding import SYSCTLS
from podtide.agent.bridge.port import Bridge, BridgeError
from podtide.agent.port import NotReady
from podtide.agent.request.address_space import AddressSpace
from podtide.cluster.backoff import Backoff, FailureStreak
from podtide.core.pool.address import Family
from podtide.core.pool.bridge_gateways import BridgeAddress, decide_changes, gateways_needed
from podtide.runtime.runtime import Runtime
from podtide.runtime.wakeup import Wakeup

_LOOK_EVERY_SECONDS = 30.0
"""How often to check anyway: when a pod frees an address of a CIDR that is gone, there is no event."""


class NodeAddresses(Struct, frozen=True):
    """What the node has of its subnets."""

    stated: Mapping[str, str]
    """The gateway of each known CIDR; "" where none is stated."""
    held: frozenset[str]
    """Every address of the node's pool."""


class BridgeGateways:
    """The gateways of one node. `addresses` returns what the node has, or None while that is not known."""

    def __init__(
        self, bridge: Bridge, addresses: Callable[[], NodeAddresses | None], *, runtime: Runtime
    ) -> None:
        self.in_place = asyncio.Event()
        """Set once the bridge has had all gateways that it needs."""
        self._bridge = bridge
        self._addresses = addresses
        self._clock = runtime.clock
        self._log = runtime.log.bind(bridge=bridge.name)
        self._failures = FailureStreak(Backoff(), runtime.clock, runtime.randomness)
        self._wakeup = Wakeup(runtime.clock)
        self._needed: dict[str, str] = {}
        """The gateway, with prefix length, by CIDR."""
        self._present: frozenset[str] = frozenset()
        self._put: set[str] = set()
        """The gateways that this process put there or found there: the kernel may not remember whose they are."""
        self._trouble = ""
        self._not_forwarded: set[Family] = set()

    async def run(self) -> NoReturn:
        """Put back what is missing whenever the bridge changed, until cancelled."""
        with self._bridge.watch(self._wakeup.wake):
            while True:
                self.look()
                again = self._failures.delay_seconds() if self._trouble else _LOOK_EVERY_SECONDS
                await self._wakeup.wait(self._clock.monotonic() + again)

    def look(self) -> None:
        """Give the bridge the gateways that it needs now, and take off those that it needs no more."""
        node = self._addresses()
        if node is None:
            return  # nothing is taken off either: a pod may need it
        self._needed = gateways_needed(node.stated, node.held)
        try:
            self._change(node)
        except BridgeError as error:
            if str(error) != self._trouble:
                self._log.warning("the bridge lacks gateways; will go on trying", error=str(error))
            self._trouble = str(error)
            return
        self._trouble = ""
        self._forward()
        self.in_place.set()

    def require(self, ip: str, space: AddressSpace) -> None:
        """NotReady unless the bridge has the gateway of this address."""
        if self._has(space):
            return
        self.look()
        if not self._has(space):
            raise NotReady(
                f"the gateway {self._needed[space.cidr]} of {ip} is not on the bridge {self._bridge.name} yet: "
                f"{self._trouble}; try again"
            )

    def gateway_of(self, space: AddressSpace) -> str:
        """The gateway of the CIDR: that which it states, or that which the bridge has for it."""
        return space.gateway or self._needed.get(space.cidr, "").partition("/")[0]

    def _has(self, space: AddressSpace) -> bool:
        gateway = self._needed.get(space.cidr)
        return gateway is None or gateway in self._present

    def _change(self, node: NodeAddresses) -> None:
        self._present = frozenset()
        there = self._bridge.ensure()
        needed = self._needed.values()
        changes = decide_changes(tuple(needed), node.held, [self._as_known(each) for each in there])
        self._present = frozenset(each.address for each in there)
        self._put |= self._present.intersection(needed)
        for gateway in changes.remove:
            self._bridge.remove(gateway)
            self._present -= {gateway}
            self._put.discard(gateway)
            self._log.info("took a gateway off the bridge", gateway=gateway)
        for gateway in changes.add:
            self._bridge.add(gateway)
            self._present |= {gateway}
            self._put.add(gateway)
            self._log.info("put a gateway on the bridge", gateway=gateway)

    def _forward(self) -> None:
        """Have the node forward what its gateways are sent, and log once if it does not."""
        families = {_family(gateway) for gateway in self._needed.values()}
        missing = {family for family in families if not self._bridge.forward(family)}
        for family in sorted(missing - self._not_forwarded):
            self._log.warning(
                "the node does not forward packets",
                reason=f"pods reach nothing outside their own CIDR, and the agent may not change that: set "
                f"{SYSCTLS[family]}=1 on the node, with sysctl -w and in /etc/sysctl.d",
            )
        self._not_forwarded = missing

    def _as_known(self, found: BridgeAddress) -> BridgeAddress:
        return BridgeAddress(found.address, is_ours=found.is_ours or found.address in self._put)


def _family(gateway: str) -> Family:
    return 6 if ":" in gateway else 4
