"""The story of slices: a secondary network is cut, one slice for each node, and a node is replaced."""

from podtide.cluster.port import NotFound
from podtide.resources.ip_pool import IPPool
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.simulation.demo.chapters import BURST_PODS, PODS_EACH
from podtide.simulation.demo.stage import DemoStage
from podtide.simulation.nodes.network_definitions import Definition, described_network

_NAME = "storage"
_SLICE_BITS = 6
"""A slice is a /26: 62 addresses."""
_FIRST = "10.250.0.0"
_CALM_SECONDS = 8.0


def storage_network(nodes: int) -> tuple[Definition, ...]:
    """The network of the story: as many slices as there are nodes, and some to spare for the ones that come."""
    bits = max(4, nodes.bit_length())
    return (described_network(_NAME, 1, f"{_FIRST}/{32 - _SLICE_BITS - bits}", f"/{32 - _SLICE_BITS}"),)


async def tell_slices(stage: DemoStage) -> None:
    """Tell the three chapters."""
    await _cut(stage)
    await stage.pause(_CALM_SECONDS)
    await _burst(stage)
    await stage.pause(_CALM_SECONDS)
    await _replace(stage)
    await stage.pause(_CALM_SECONDS)


async def _cut(stage: DemoStage) -> None:
    nodes, network = len(stage.names), stage.world.networks[0].network.ranges[0]
    stage.begin(
        "The cut",
        f"{nodes} nodes join. The network {_NAME}, {network.addresses}, is cut, and each node gets a slice and a list of its own.",
        _look(stage),
    )
    await stage.world.define_networks()
    for name in stage.names:
        await stage.world.add_node(name)
    await _until_each_has_one(stage, *stage.names)
    for name in stage.names:
        await stage.add_pods(name, PODS_EACH)
    await stage.until(stage.all_served)
    pool = await _slice_pool(stage)
    stage.say(
        f"{len(_owners(pool))} of {_total(pool)} slices have an owner, and {stage.pod_count} pods an address in each network."
    )


async def _burst(stage: DemoStage) -> None:
    node = stage.names[0]
    stage.begin(
        "A burst",
        f"{BURST_PODS} pods more on {node}. Their addresses come from its own slice, by its own list: it waits for no other node.",
    )
    before = await _slice_pool(stage)
    beginning = stage.now
    await stage.add_pods(node, BURST_PODS)
    await stage.until(stage.all_served)
    written = sum(write.kind == IPPool.api.kind for write in stage.writes_since(beginning))
    unmoved = _owners(before) == _owners(await _slice_pool(stage))
    stage.say(
        f"{BURST_PODS} pods have their addresses by {written} writes of {node}'s list"
        f"{', and no slice changed hands' if unmoved else ''}."
    )


async def _replace(stage: DemoStage) -> None:
    gone = stage.names[-1]
    new = f"{gone}-new"
    stage.begin(
        "A node is replaced",
        f"{gone} is switched off and removed; {new} comes in its place. What {gone} had must rest, for its machine may still run.",
        _look(stage),
    )
    slice_of_gone = _owners(await _slice_pool(stage))[gone]
    await stage.remove_node(gone)
    await stage.world.add_node(new)
    await _until_each_has_one(stage, new)
    await stage.add_pods(new, PODS_EACH)
    await stage.until(stage.all_served)
    owners = _owners(await _slice_pool(stage))
    stage.say(
        f"{new} has {owners[new]}, and {slice_of_gone} rests: no other node gets it before its quarantine is over."
    )


def _look(stage: DemoStage) -> str:
    return f"{stage.kubectl} get nodeslicepools,ippools --all-namespaces"


async def _until_each_has_one(stage: DemoStage, *nodes: str) -> None:
    """Wait until all these nodes have a slice."""

    async def have_one() -> bool:
        try:
            return set(nodes) <= set(_owners(await _slice_pool(stage)))
        except NotFound:  # the controller has not cut it yet
            return False

    await stage.until(have_one)


async def _slice_pool(stage: DemoStage) -> NodeSlicePool:
    of = stage.world.networks[0].network.ranges[0]
    return await stage.world.cluster.get(
        NodeSlicePool, of.node_slice_pool_name(), stage.world.options.networks.namespace
    )


def _owners(pool: NodeSlicePool) -> dict[str, str]:
    """The slice of each node."""
    listed = pool.status.allocations if pool.status else []
    return {each.node_name: each.slice_range for each in listed if each.node_name}


def _total(pool: NodeSlicePool) -> int:
    return (pool.status.total if pool.status else None) or 0
