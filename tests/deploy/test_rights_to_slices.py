"""Whose a pool or a Lease is that nobody has marked: NodeSlicePools say who has which slice, and agents are held to that.

Names of networks and nodes are put together by dashes, so these nodes are called as unhappily as can be.
"""

import asyncio
from functools import partial
from ipaddress import ip_network

import pytest

from deploy.installed import Installed, connected, wait_until
from deploy.two_nodes import (
    HERE,
    MANAGER,
    THERE,
    Attempt,
    Stage,
    allocate_in,
    lease,
    place,
    pool,
    stage,
    take_lease,
)
from podtide.cluster.port import Forbidden
from podtide.resources.base import Resource
from podtide.resources.codec import encode
from podtide.resources.metadata_keys import NETWORK_ANNOTATION
from podtide.resources.names import normalise_range
from podtide.resources.node_slice_pool import (
    NodeSliceAllocation,
    NodeSlicePool,
    NodeSlicePoolSpec,
    NodeSlicePoolStatus,
)

BEGINS, ENDS = f"{HERE}-b", f"x-{HERE}"
"""Nodes whose names begin and end with this one's. The `b` may be part of an address, too."""
SLICES = {
    "10.4.0.0/16": ("10.4.1.0/24", "10.4.2.0/24", "10.4.3.0/24", "10.4.4.0/24"),
    "10.8.0.0/16": ("10.8.1.0/24", "10.8.2.0/24", "10.8.3.0/24", "10.8.4.0/24"),
    "10.9.0.0/16": ("10.9.1.0/24", "10.9.2.0/24", "10.9.3.0/24", "10.9.4.0/24"),
    "fd00:4::/48": ("fd00:4:0:1::/64", "fd00:4:0:2::/64", "fd00:4:0:3::/64", "fd00:4:0:4::/64"),
    "fd00:9::/48": ("fd00:9:0:1::/64", "fd00:9:0:2::/64", "fd00:9:0:3::/64", "fd00:9:0:4::/64"),
}
"""By its range, what each of the four nodes has of a network."""


def network(name: str, range_: str, size: str, **annotations: str) -> NodeSlicePool:
    entries = [
        NodeSliceAllocation(node_name=node, slice_range=slice_)
        for node, slice_ in zip((HERE, THERE, BEGINS, ENDS), SLICES[range_], strict=True)
    ]
    return NodeSlicePool(
        metadata=place(name, **annotations),
        spec=NodeSlicePoolSpec(range=range_, slice_size=size),
        status=NodeSlicePoolStatus(allocations=entries),
    )


def of_10_000_nodes() -> list[NodeSliceAllocation]:
    """Those that matter come last."""
    nodes = [*(f"worker-{number:05}.example.org" for number in range(9_998)), ENDS, HERE]
    cut = ip_network("10.64.0.0/10").subnets(new_prefix=24)
    return [
        NodeSliceAllocation(node_name=node, slice_range=str(slice_))
        for node, slice_ in zip(nodes, cut, strict=False)
    ]


LONG_LIST = of_10_000_nodes()
LAST = LONG_LIST[-1].slice_range
LONG = NodeSlicePool(
    metadata=place("long", **{NETWORK_ANNOTATION: "long"}),
    spec=NodeSlicePoolSpec(range="10.64.0.0/10", slice_size="/24"),
    status=NodeSlicePoolStatus(allocations=LONG_LIST),
)
MADE: tuple[Resource, ...] = (
    LONG,
    pool(f"long-{HERE}-{normalise_range(LAST)}", LAST),
    network("blue", "10.4.0.0/16", "/24", **{NETWORK_ANNOTATION: "blue"}),
    network("six", "fd00:4::/48", "/64", **{NETWORK_ANNOTATION: "six"}),
    # A network without a name, once podtide's, and once as Whereabouts made it.
    network("10.9.0.0-16", "10.9.0.0/16", "/24", **{NETWORK_ANNOTATION: "10.9.0.0-16"}),
    network("fd00-9---48", "fd00:9::/48", "/64", **{NETWORK_ANNOTATION: "fd00-9---48"}),
    network("their-conf", "10.8.0.0/16", "24"),
    # Pools of slices as Whereabouts makes them.
    pool(f"blue-{HERE}-10.4.1.0-24", "10.4.1.0/24"),
    pool(f"blue-{THERE}-10.4.2.0-24", "10.4.2.0/24"),
    pool(f"six-{HERE}-fd00-4-0-1---64", "fd00:4:0:1::/64"),
    pool(f"six-{THERE}-fd00-4-0-2---64", "fd00:4:0:2::/64"),
    pool(f"{HERE}-10.8.1.0-24", "10.8.1.0/24"),
    pool(f"{THERE}-10.8.2.0-24", "10.8.2.0/24"),
    # A pool of podtide's whose mark somebody has taken off.
    pool(f"blue-{ENDS}", "10.4.4.0/24"),
    # Pools that all nodes share.
    pool("red-10.4.2.0-24", "10.4.2.0/24"),
    pool("blue-10.4.0.0-16", "10.4.0.0/16"),
    # Leases that nobody holds.
    lease(f"blue-{ENDS}", ""),
    lease(f"blue-{BEGINS}-10.4.3.0-24", ""),
    lease(f"{ENDS}-10.8.4.0-24", ""),
    lease(f"six-{ENDS}-fd00-4-0-4---64", ""),
    lease(f"six-{BEGINS}-fd00-4-0-3---64", ""),
    lease(f"{BEGINS}-fd00-9-0-3---64", ""),
)


@pytest.fixture(scope="module")
def sliced(two_nodes: Installed) -> Installed:
    """The two nodes with slices of some networks; all that is cleared away with them."""

    async def make() -> None:
        async with connected(two_nodes.control_plane.kubeconfig) as admin:
            for each in MADE:
                await admin.create(each, manager=MANAGER)

    def is_refused(written: Resource) -> bool:
        answer = two_nodes.control_plane.kubectl(
            *("create", "--dry-run=server", "--filename=-"),
            stdin=encode(written).decode(),
            kubeconfig=two_nodes.agent(HERE),
        )
        return "NodeSlicePool" in answer.stderr

    asyncio.run(make())
    # The policies are asked about a NodeSlicePool some time after it was made.
    networks = [each for each in MADE if isinstance(each, NodeSlicePool) and each is not LONG]
    probes = [lease(f"{each.metadata.name}-{ENDS}", HERE) for each in networks]
    for probe in (*probes, pool("blue-node-c-10.4.7.0-24", "10.4.7.0/24")):
        wait_until(partial(is_refused, probe))
    return two_nodes


def create(it: Resource) -> Attempt:
    async def attempt(stage: Stage) -> None:
        await stage.cluster.create(it, manager=MANAGER)

    return attempt


MAY: dict[str, Attempt] = {
    "allocate from its own slice that Whereabouts made": lambda it: allocate_in(
        it, f"blue-{HERE}-10.4.1.0-24"
    ),
    "allocate from its own slice of a network without a name": lambda it: allocate_in(
        it, f"{HERE}-10.8.1.0-24"
    ),
    "allocate from its own slice of IPv6": lambda it: allocate_in(it, f"six-{HERE}-fd00-4-0-1---64"),
    "allocate from a pool that all share in another node's range": lambda it: allocate_in(
        it, "red-10.4.2.0-24"
    ),
    "allocate from a pool of a whole network that is sliced now": lambda it: allocate_in(
        it, "blue-10.4.0.0-16"
    ),
    "make a pool that all share in the range of another network's slices": create(
        pool("red-10.4.9.0-24", "10.4.9.0/24")
    ),
    "make a pool that all share without a name in the range of slices": create(
        pool("10.8.9.0-24", "10.8.9.0/24")
    ),
    "make a pool that all share of a part that is no slice": create(
        pool(f"{THERE}-10.8.9.0-25", "10.8.9.0/25")
    ),
    "make a pool that all share of a network around slices": create(pool("red-10.8.0.0-15", "10.8.0.0/15")),
    "make a pool that all share of the other family": create(pool("red-fd00-8---64", "fd00:8::/64")),
    "take the Lease of its own slice by Whereabouts": create(lease(f"blue-{HERE}-10.4.1.0-24", HERE)),
    "take the Lease of its own slice without a name": create(lease(f"{HERE}-10.8.1.0-24", HERE)),
    "take the Lease of its own slice of IPv6": create(lease(f"six-{HERE}-fd00-4-0-1---64", HERE)),
    "allocate from a pool that is the last in a very long list": lambda it: allocate_in(
        it, f"long-{HERE}-{normalise_range(LAST)}"
    ),
    "take the Lease of a pool that is the last in a very long list": create(
        lease(f"long-{HERE}-{normalise_range(LAST)}", HERE)
    ),
    "take the Lease of its own slice of IPv6 without a name": create(lease(f"{HERE}-fd00-9-0-1---64", HERE)),
    "take the Lease of its own slice by podtide": create(lease(f"10.9.0.0-16-{HERE}", HERE)),
}

BY_LIST, BY_NAME = "another node's, and this agent is on node-a", "which the controller makes"
MAY_NOT: dict[str, tuple[Attempt, str]] = {
    "allocate from another's slice that Whereabouts made": (
        lambda it: allocate_in(it, f"blue-{THERE}-10.4.2.0-24"),
        BY_LIST,
    ),
    "allocate from another's slice of a network without a name": (
        lambda it: allocate_in(it, f"{THERE}-10.8.2.0-24"),
        BY_LIST,
    ),
    "allocate from another's slice of IPv6": (
        lambda it: allocate_in(it, f"six-{THERE}-fd00-4-0-2---64"),
        BY_LIST,
    ),
    "allocate from the pool of a node whose name ends with its own": (
        lambda it: allocate_in(it, f"blue-{ENDS}"),
        BY_LIST,
    ),
    "make the pool of another's slice": (
        create(pool(f"{THERE}-10.9.2.0-24", "10.9.2.0/24")),
        f"{BY_LIST}|{BY_NAME}",
    ),
    "make the pool of a slice that nobody has yet": (
        create(pool("blue-node-c-10.4.7.0-24", "10.4.7.0/24")),
        BY_NAME,
    ),
    "make its own pool of such a slice": (
        create(pool(f"blue-{HERE}-10.4.7.0-24", "10.4.7.0/24")),
        BY_NAME,
    ),
    "make the pool of such a slice of a network without a name": (
        create(pool("node-c-10.9.7.0-24", "10.9.7.0/24")),
        BY_NAME,
    ),
    "make the pool of such a slice of a network of Whereabouts'": (
        create(pool("node-c-10.8.7.0-24", "10.8.7.0/24")),
        BY_NAME,
    ),
    "make the pool of such a slice of IPv6": (
        create(pool("six-node-c-fd00-4-0-7---64", "fd00:4:0:7::/64")),
        BY_NAME,
    ),
    "take the free Lease of a node whose name ends with its own": (
        lambda it: take_lease(it, f"blue-{ENDS}", HERE),
        BY_LIST,
    ),
    "take the free Lease of a node whose name begins with its own": (
        lambda it: take_lease(it, f"blue-{BEGINS}-10.4.3.0-24", HERE),
        f"whose names end in the node|{BY_LIST}",
    ),
    "take the free Lease of IPv6 of a node whose name begins with its own": (
        lambda it: take_lease(it, f"six-{BEGINS}-fd00-4-0-3---64", HERE),
        BY_LIST,
    ),
    "take the same of a network without a name": (
        lambda it: take_lease(it, f"{BEGINS}-fd00-9-0-3---64", HERE),
        BY_LIST,
    ),
    "take such a Lease of a network without a name": (
        lambda it: take_lease(it, f"{ENDS}-10.8.4.0-24", HERE),
        BY_LIST,
    ),
    "take such a Lease of IPv6": (
        lambda it: take_lease(it, f"six-{ENDS}-fd00-4-0-4---64", HERE),
        BY_LIST,
    ),
    "make such a Lease that is at the end of a very long list": (
        create(lease(f"long-{ENDS}", HERE)),
        BY_LIST,
    ),
    "make such a Lease": (create(lease(f"10.9.0.0-16-{ENDS}", HERE)), BY_LIST),
}


@pytest.mark.parametrize("sentence", MAY)
async def test_an_agent_may(sliced: Installed, sentence: str) -> None:
    async with stage(sliced, "agent") as it:
        await MAY[sentence](it)


@pytest.mark.parametrize("sentence", MAY_NOT)
async def test_an_agent_may_not(sliced: Installed, sentence: str) -> None:
    attempt, words = MAY_NOT[sentence]
    async with stage(sliced, "agent") as it:
        with pytest.raises(Forbidden, match=words):
            await attempt(it)
