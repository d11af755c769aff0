"""The subnets of the node's addresses: one, or two where pods have an address of each family.

A node requests the same number of addresses in all of its network containers, so one set of parameters must be in force.
With two subnets it is the one with the smaller request: it suffices for every pod, and the scarcer subnet decides.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NoReturn

from podtide.agent.request.address_space import AddressSpace
from podtide.agent.request.subnet_view import ParametersInForce, SubnetView
from podtide.core.errors import InvalidInput
from podtide.core.ranges import IPNetwork, parse_network
from podtide.core.subnet.scaler import NodeScaler, effective_scaler
from podtide.core.subnet.scaling import decide_request
from podtide.runtime.clock import Clock
from podtide.runtime.wakeup import Wakeup


class NodeSubnets:
    """Watches the subnets of the node's addresses. `view` creates the view of one."""

    def __init__(self, view: Callable[[str], SubnetView], *, clock: Clock) -> None:
        self._make_view = view
        self._views: dict[str, SubnetView] = {}
        self._wakeup = Wakeup(clock)

    def follow(self, names: Iterable[str]) -> None:
        """Watch these subnets from now on."""
        wanted = tuple(names)
        if wanted != tuple(self._views):
            self._views = {name: self._views.get(name) or self._make_view(name) for name in wanted}
            self._wakeup.wake()

    @property
    def names(self) -> str:
        """The names of the subnets, separated by commas."""
        return ", ".join(self._views)

    @property
    def are_known(self) -> bool:
        """Whether the state of all subnets is known."""
        return all(view.is_known for view in self._views.values())

    @property
    def are_exhausted(self) -> bool:
        """Whether one of the subnets is exhausted."""
        return any(view.is_exhausted for view in self._views.values())

    @property
    def are_starved(self) -> bool:
        """Whether one of the subnets is starved."""
        return any(view.is_starved for view in self._views.values())

    def spaces(self, name: str) -> tuple[AddressSpace, ...]:
        """The CIDRs of a subnet with their gateways; none where the cluster does not state them."""
        view = self._views.get(name)
        return view.spaces if view is not None else ()

    @property
    def draining(self) -> tuple[IPNetwork, ...]:
        """The CIDRs that are being removed from their subnets. Invalid ones are skipped."""
        return tuple(network for view in self._views.values() for network in _networks(view.draining))

    def are_urgent(self, *, answered: bool) -> bool:
        """Whether this node should release surplus addresses without delay.

        Always while a subnet is starved. While one is exhausted and has a batch in force, until the node has `answered`
        that batch: by then it has released its share.
        """
        return any(
            view.is_starved or (view.is_exhausted and not (view.has_batch and answered))
            for view in self._views.values()
        )

    def in_force(self, node: NodeScaler, demand: int) -> ParametersInForce:
        """The parameters in force for a node with this demand and these parameters of its own.

        Without a subnet, which a network container may leave out, the node's own parameters are in force.
        """
        candidates = [view.in_force(node) for view in self._views.values()]
        if not candidates:
            return ParametersInForce(effective_scaler(node, None))
        if len(candidates) == 1:
            return candidates[0]
        # Of equal requests the smaller batch: a subnet counts a node that states a smaller batch as having answered.
        return min(
            candidates, key=lambda each: (decide_request(demand, each.scaler).request, each.scaler.batch)
        )

    async def run(self) -> NoReturn:
        """Run the views of all subnets until cancelled."""
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
