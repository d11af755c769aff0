"""The subnets that the node's addresses come from: one, or two where pods have an address of each family.

A node asks for one number of addresses in all of its network containers, so one set of parameters must be in force.
With two subnets it is the more frugal one: every pod gets its addresses by either, and the scarcer subnet decides.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NoReturn

from podtide.agent.request.address_space import AddressSpace
from podtide.agent.request.subnet_view import InForce, SubnetView
from podtide.core.errors import InvalidInput
from podtide.core.ranges import IPNetwork, parse_network
from podtide.core.subnet.scaler import NodeScaler, effective_scaler
from podtide.core.subnet.scaling import decide_request
from podtide.runtime.clock import Clock
from podtide.runtime.wakeup import Wakeup


class Subnets:
    """Follows as many subnets as the node has addresses of. `view` makes the view of one."""

    def __init__(self, view: Callable[[str], SubnetView], *, clock: Clock) -> None:
        self._make_view = view
        self._views: dict[str, SubnetView] = {}
        self._wakeup = Wakeup(clock)

    def follow(self, names: Iterable[str]) -> None:
        """These are the node's subnets now."""
        wanted = tuple(names)
        if wanted != tuple(self._views):
            self._views = {name: self._views.get(name) or self._make_view(name) for name in wanted}
            self._wakeup.wake()

    @property
    def names(self) -> str:
        """The subnets, for people."""
        return ", ".join(self._views)

    @property
    def are_known(self) -> bool:
        """Whether all of them have been seen."""
        return all(view.is_known for view in self._views.values())

    @property
    def are_exhausted(self) -> bool:
        """Whether one of them runs low."""
        return any(view.is_exhausted for view in self._views.values())

    @property
    def are_starved(self) -> bool:
        """Whether in one of them a node waits while nothing is left."""
        return any(view.is_starved for view in self._views.values())

    def spaces(self, name: str) -> tuple[AddressSpace, ...]:
        """The CIDRs of a subnet with their gateways; none where the cluster does not say."""
        view = self._views.get(name)
        return view.spaces if view is not None else ()

    @property
    def draining(self) -> tuple[IPNetwork, ...]:
        """The CIDRs that are to leave their subnets. What is no CIDR is passed over."""
        return tuple(network for view in self._views.values() for network in _networks(view.draining))

    def are_urgent(self, *, answered: bool) -> bool:
        """Whether others wait for what this node can spare.

        Where a subnet is starved, always. Where one is exhausted, and says so by a batch, until the node has `answered`
        that batch: then it has given what it was to give, and what comes and goes from there on is the usual.
        """
        return any(
            view.is_starved or (view.is_exhausted and not (view.has_batch and answered))
            for view in self._views.values()
        )

    def in_force(self, node: NodeScaler, demand: int) -> InForce:
        """What is in force for a node whose own parameters are these and whose demand is this.

        A network container need not name its subnet: then the node's own parameters are all there is.
        """
        candidates = [view.in_force(node) for view in self._views.values()]
        if not candidates:
            return InForce(effective_scaler(node, None))
        if len(candidates) == 1:
            return candidates[0]
        # Of equals the smaller batch: a subnet counts a node as having answered it that goes by less, not by more.
        return min(
            candidates, key=lambda each: (decide_request(demand, each.scaler).request, each.scaler.batch)
        )

    async def run(self) -> NoReturn:
        """Keep all views up to date until cancelled."""
        running: dict[SubnetView, asyncio.Task[NoReturn]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                views = self._views.values()
                for view in [view for view in running if view not in views]:
                    running.pop(view).cancel()
                for view in views:
                    if view not in running:
                        running[view] = group.create_task(view.run())
                await self._wakeup.wait()


def _networks(cidrs: Iterable[str]) -> Iterator[IPNetwork]:
    for cidr in cidrs:
        with suppress(InvalidInput):
            yield parse_network(cidr)
