"""Secondary networks in scenarios: what may happen to them, and what may be expected of them.

A file names its networks (`networks: {storage: {range: 10.20.0.0/22, slice: /26}}`), and every pod is attached to each of
them. As in `steps` and `measures`, a function is a word of scenario files, and its docstring is its line in
`docs/scenarios.md`. What is said of a network is over all clusters: each has its own network of that name.
"""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from podtide.cluster.port import NotFound
from podtide.core.errors import InvalidInput
from podtide.networks.ownership import KnownNetworks
from podtide.resources.ip_pool import IPPool
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.simulation.nodes.network_definitions import Definition
from podtide.simulation.nodes.pods import MANAGER
from podtide.simulation.scenario.stage import ClusterStage, ScenarioStage

Networks = Annotated[list[str], Meta(examples=["[storage]"])]


async def define_networks(stage: ScenarioStage, networks: Networks) -> None:
    """A person creates the NetworkAttachmentDefinitions of these networks. Until then nothing is cut, and pods wait for slices."""
    for name in networks:
        for there, network in _of(stage, name):
            await there.world.cluster.create(network.attachment(), manager=MANAGER)


async def delete_slice_pools(stage: ScenarioStage, networks: Networks) -> None:
    """A person deletes the NodeSlicePools of these networks, the lists of whose each slice is."""
    for name in networks:
        for there, network in _of(stage, name):
            for of in network.network.ranges:
                namespace = there.world.options.networks.namespace
                await there.world.cluster.delete(NodeSlicePool, of.node_slice_pool_name(), namespace)


async def slices(stage: ScenarioStage, network: str) -> int:
    """Slices of the network that nodes have; those of removed nodes among them, until their quarantine is over."""
    return sum([each.status.assigned or 0 for each in await _slice_pools(stage, network) if each.status])


async def attached(stage: ScenarioStage, network: str) -> int:
    """Addresses of the network that pods hold, by all of its IPPools."""
    count = 0
    for there, found in _of(stage, network):
        known = KnownNetworks(each.network for each in there.world.networks)
        pools = await there.world.cluster.list(IPPool, there.world.options.networks.namespace)
        of_network = [
            pool
            for pool in pools.items
            if (owner := known.of_pool(pool)) is not None and owner.network == found.network.key
        ]
        count += sum(len(pool.spec.allocations) for pool in of_network)
    return count


NETWORK_STEPS = {
    step.__name__.replace("_", " "): step
    for step in (
        define_networks,
        delete_slice_pools,
    )
}
NETWORK_MEASURES = {measure.__name__.replace("_", " "): measure for measure in (slices, attached)}


def _of(stage: ScenarioStage, name: str) -> Iterator[tuple[ClusterStage, Definition]]:
    """The network in every cluster; InvalidInput if the file does not name it."""
    for there in stage.clusters.values():
        found = {each.name: each for each in there.world.networks}
        if not found:
            raise InvalidInput(
                "the file names no networks: add such as networks: {storage: {range: 10.20.0.0/22}}"
            )
        if (name or next(iter(found))) not in found:
            raise InvalidInput(f"there is no network {name!r}: the networks are {', '.join(found)}")
        yield there, found[name or next(iter(found))]


async def _slice_pools(stage: ScenarioStage, name: str) -> list[NodeSlicePool]:
    found = []
    for there, network in _of(stage, name):
        namespace = there.world.options.networks.namespace
        for of in network.network.ranges:
            try:
                found.append(
                    await there.world.cluster.get(NodeSlicePool, of.node_slice_pool_name(), namespace)
                )
            except NotFound:  # the controller has not cut it yet
                continue
    return found
