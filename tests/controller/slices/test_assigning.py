"""Nodes get slices: which, in which order, and what is written for it."""

import msgspec
import pytest

from controller.slices.network_world import a_network_world, conf, ipam, moment
from podtide.controller.options import NetworkOptions
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import (
    NETWORK_ANNOTATION,
    NODE_ANNOTATION,
    NODE_UID_ANNOTATION,
    POOL_UID_ANNOTATION,
)
from podtide.resources.names import Naming
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node import Node
from podtide.resources.node_slice_pool import NodeSlicePool


async def test_every_node_gets_the_first_free_slice_and_then_a_pool_of_its_own() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        replica = await world.start()
        assert await world.entries("blue") == [
            ("n1", "10.0.0.0/24"),
            ("n2", "10.0.1.0/24"),
            ("", "10.0.2.0/24"),
            ("", "10.0.3.0/24"),
        ]
        status = (await world.slice_pool("blue")).status
        assert status is not None
        assert (status.assigned, status.total, status.conditions) == (2, 4, [])
        pool, node = await world.pool("blue-n2"), await world.cluster.get(Node, "n2")
        assert (pool.spec.range, pool.spec.allocations) == ("10.0.1.0/24", {})
        assert pool.metadata.annotations == {
            NODE_ANNOTATION: "n2",
            NODE_UID_ANNOTATION: node.metadata.uid,
            NETWORK_ANNOTATION: "blue",
            POOL_UID_ANNOTATION: pool.metadata.uid,
        }
        assert not pool.metadata.owner_references
        assert replica.cluster.writes == [
            *["create IPPool"] * 2,
            "create NodeSlicePool",
            *["replace IPPool"] * 2,
        ]


async def test_a_quiet_cluster_is_not_written_to_and_neither_is_one_that_is_read_anew() -> None:
    async with a_network_world("n1", "n2") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        first = await world.start()
        written = len(first.cluster.writes)
        await moment(3600)
        assert len(first.cluster.writes) == written
        second = await world.start()
        await moment(3600)
        assert second.cluster.writes == []


async def test_a_hundred_nodes_that_join_at_once_are_one_write_of_the_list() -> None:
    async with a_network_world() as world:
        await world.define("blue", conf(ipam(network_name="blue", range="10.0.0.0/8")))
        replica = await world.start()
        await world.add_nodes(*(f"n{number:03}" for number in range(100)))
        await moment()
        assert replica.cluster.about("NodeSlicePool") == ["create NodeSlicePool", "replace NodeSlicePool"]
        assert len(await world.assigned("blue")) == len(await world.names(IPPool)) == 100


async def test_what_kubelets_write_on_nodes_concerns_nobody() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        replica = await world.start()
        looks = replica.counts.network_looks
        node = await world.cluster.get(Node, "n1")
        metadata = msgspec.structs.replace(node.metadata, labels={"zone": "a"})
        await world.cluster.replace(msgspec.structs.replace(node, metadata=metadata), manager="kubelet")
        await moment()
        assert replica.counts.network_looks == looks


async def test_what_agents_write_on_pools_concerns_nobody() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        replica = await world.start()
        looks = replica.counts.network_looks
        await world.hold("blue-n1", 1, 2)
        await world.hold("blue-n1")
        await moment()
        assert replica.counts.network_looks == looks


@pytest.mark.parametrize("kind", ["podtide", "whereabouts"])
async def test_single_plugins_and_lists_of_both_types_are_read(kind: str) -> None:
    async with a_network_world("n1") as world:
        keys = ipam(type=kind, network_name="blue")
        plugins = [{"type": "macvlan", "ipam": keys}, {"type": "tuning"}]
        await world.define("single", conf(keys))
        await world.define(
            "list", msgspec.json.encode({"cniVersion": "1.0.0", "name": "conf", "plugins": plugins}).decode()
        )
        await world.start()
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24"}
        assert await world.names(IPPool) == ["blue-n1"]
        assert await world.events(NetworkAttachmentDefinition, "list") == []


@pytest.mark.parametrize(
    "config",
    [
        "",
        '{"cniVersion": "1.0.0", "name": "l2", "type": "bridge"}',
        conf({"type": "host-local", "subnet": "10.0.0.0/24"}),
        conf({"type": "podtide"}),
        conf(ipam(node_slice_size=None)),
        conf(ipam(fast_ipam=False)),
    ],
    ids=["no configuration", "no ipam", "another's", "primary", "classic", "classic by fast_ipam"],
)
async def test_networks_without_slices_are_let_be(config: str) -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", config)
        replica = await world.start()
        assert replica.cluster.writes == []


async def test_both_ranges_of_a_dual_stack_network_are_cut() -> None:
    async with a_network_world("n1", "n2") as world:
        ranges = [
            {"range": "10.0.0.0/16", "node_slice_size": "/24"},
            {"range": "fd00::/48", "node_slice_size": "/64"},
        ]
        await world.define(
            "blue", conf(ipam(range=None, node_slice_size=None, network_name="blue", ipRanges=ranges))
        )
        await world.start()
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24", "n2": "10.0.1.0/24"}
        assert await world.assigned("blue-fd00---48") == {"n1": "fd00::/64", "n2": "fd00:0:0:1::/64"}
        pools = {pool.metadata.name: pool.spec.range for pool in (await world.cluster.list(IPPool)).items}
        assert pools == {
            "blue-n1": "10.0.0.0/24",
            "blue-n2": "10.0.1.0/24",
            "blue-fd00---48-n1": "fd00::/64",
            "blue-fd00---48-n2": "fd00:0:0:1::/64",
        }


async def test_a_slice_that_excludes_leave_empty_is_offered_to_nobody() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue", exclude=["10.0.0.0/24"])))
        await world.start()
        assert await world.assigned("blue") == {"n1": "10.0.1.0/24"}


async def test_a_slice_that_a_pool_of_the_same_network_overlaps_is_taken() -> None:
    async with a_network_world("n1") as world:
        await world.add_pool("blue-10.0.0.0-25", "10.0.0.0/25", 5)
        await world.add_pool("red-10.0.1.0-24", "10.0.1.0/24", 5)
        await world.define(
            "red", conf(ipam(range="192.168.0.0/24", node_slice_size="/26", network_name="red"))
        )
        await world.define("blue", conf(ipam(network_name="blue")))
        await world.start()
        assert await world.assigned("blue") == {"n1": "10.0.1.0/24"}


async def test_a_pool_that_names_its_network_and_no_node_keeps_its_slice_from_everybody() -> None:
    async with a_network_world("n1") as world:
        pool = await world.add_pool("blue-by-hand", "10.0.0.0/24")
        marked = msgspec.structs.replace(pool.metadata, annotations={NETWORK_ANNOTATION: "blue"})
        await world.cluster.replace(msgspec.structs.replace(pool, metadata=marked), manager="kubectl")
        await world.define("blue", conf(ipam(network_name="blue")))
        await world.start()
        assert await world.assigned("blue") == {"n1": "10.0.1.0/24"}


async def test_unnamed_networks_share_one_scope_of_addresses() -> None:
    async with a_network_world("n1") as world:
        await world.define("narrow", conf(ipam(range="10.0.0.0/24", node_slice_size="/26")))
        await world.start()
        await world.define("wide", conf(ipam(range="10.0.0.0/22")))
        await moment()
        assert await world.assigned("10.0.0.0-24") == {"n1": "10.0.0.0/26"}
        assert await world.assigned("10.0.0.0-22") == {"n1": "10.0.1.0/24"}


async def test_pools_whose_names_collide_get_the_other_name() -> None:
    async with a_network_world("n1-x", "x") as world:
        await world.define("one", conf(ipam(network_name="blue")))
        await world.define("two", conf(ipam(network_name="blue-n1", range="172.16.0.0/16")))
        await world.start()
        pools = (await world.cluster.list(IPPool)).items
        assert sorted((pool.metadata.annotations[NETWORK_ANNOTATION], pool.spec.range) for pool in pools) == [
            ("blue", "10.0.0.0/24"),
            ("blue", "10.0.1.0/24"),
            ("blue-n1", "172.16.0.0/24"),
            ("blue-n1", "172.16.1.0/24"),
        ]
        names = {pool.metadata.name for pool in pools}
        assert "blue-n1-x" in names
        assert names & {"blue-n1-x-10.0.0.0-24", "blue-n1-x-172.16.1.0-24"}  # of whoever came second


async def test_shipped_names_are_made_when_told() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(), name="blue-conf"))
        await world.start(options=NetworkOptions(naming=Naming.WHEREABOUTS))
        assert await world.names(NodeSlicePool) == ["blue-conf"]
        assert await world.names(IPPool) == ["n1-10.0.0.0-24"]


async def test_pools_are_made_in_the_namespace_that_is_given() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        await world.start(options=NetworkOptions(namespace="networks"))
        assert [pool.metadata.namespace for pool in (await world.cluster.list(IPPool)).items] == ["networks"]


@pytest.mark.parametrize("kind", [NetworkAttachmentDefinition, IPPool, NodeSlicePool])
async def test_a_cluster_that_lacks_a_kind_has_no_secondary_networks(kind: type) -> None:
    async with a_network_world("n1", without=kind) as world:
        replica = await world.start()
        await moment(60)
        assert replica.cluster.writes == []


async def test_a_node_whose_pool_would_have_too_long_a_name_does_not_hold_up_others() -> None:
    long = f"a{'b' * 250}"
    async with a_network_world(long, "n1") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        await world.start()
        assert await world.names(IPPool) == ["blue-n1"]
        assert "the pool's name would be too long" in world.lines.getvalue()
