"""What NetworkAttachmentDefinitions say, and what becomes of those that say it wrongly or differently."""

import pytest

from controller.slices.network_world import a_network_world, conf, ipam, moment
from podtide.resources.ip_pool import IPPool
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node_slice_pool import NodeSlicePool


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (conf(ipam())[:-1], "network configuration is not JSON"),
        (conf(ipam(range="10.0.0.0")), "range: '10.0.0.0' has no prefix length"),
        (conf(ipam(range="10.0.0.1-fd00::9/64")), "ends in IPv6"),
        (conf(ipam(network_name="Blue")), "network_name 'Blue' cannot be part of an object's name"),
        (conf(ipam(network_name="a..b")), "NodeSlicePool name 'a..b' is not a valid Kubernetes name"),
    ],
)
async def test_what_is_wrong_with_a_definition_is_said_once(config: str, sentence: str) -> None:
    async with a_network_world("n1") as world:
        await world.define("bad", config)
        replica = await world.start()
        await world.add_nodes("n2")
        await moment(1800)
        [(reason, message)] = await world.events(NetworkAttachmentDefinition, "bad")
        assert reason == "InvalidConfig"
        assert sentence in message
        assert replica.cluster.writes == ["create Event"]


async def test_a_definition_that_is_mended_is_carried_out() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue", node_slice_size="/8")))
        await world.start()
        assert await world.names(NodeSlicePool) == []
        await world.define("blue", conf(ipam(network_name="blue")))
        await moment()
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24"}


async def test_while_a_definition_cannot_be_read_its_network_is_not_given_up() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        await world.start()
        await world.define("blue", conf(ipam(network_name="blue"))[:-1])
        await moment(600)
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24"}
        assert await world.names(IPPool) == ["blue-n1"]
        await world.undefine("blue")
        await moment()
        assert await world.names(NodeSlicePool) == await world.names(IPPool) == []


async def test_several_definitions_of_one_network_share_its_slices() -> None:
    async with a_network_world("n1") as world:
        await world.define("one", conf(ipam(network_name="blue"), name="one"), "team-a")
        await world.define("two", conf(ipam(network_name="blue", range="10.0.1.7/22"), name="two"), "team-b")
        replica = await world.start()
        assert replica.cluster.writes == ["create IPPool", "create NodeSlicePool", "replace IPPool"]
        await world.undefine("one", "team-a")
        await moment()
        assert await world.names(IPPool) == ["blue-n1"]


@pytest.mark.parametrize(
    "other",
    [ipam(range="10.0.0.0/20"), ipam(node_slice_size="/26"), ipam(node_slice_size=None)],
    ids=["another range", "another slice size", "classic"],
)
async def test_a_definition_that_disagrees_with_what_is_in_force_is_told_and_changes_nothing(
    other: dict[str, object],
) -> None:
    async with a_network_world("n1") as world:
        await world.define("first", conf(ipam(network_name="blue")))
        await world.start()
        await world.define("second", conf({**other, "network_name": "blue"}))
        await moment()
        await world.add_nodes("n2")
        await moment()
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24", "n2": "10.0.1.0/24"}
        assert await world.events(NetworkAttachmentDefinition, "first") == []
        [(reason, message)] = await world.events(NetworkAttachmentDefinition, "second")
        assert reason == "Disagreement"
        assert "default/first states 10.0.0.0/22 cut by /24" in message
        assert "default/second states" in message
        accepted = await world.condition("blue", "Accepted")
        assert accepted is not None
        assert (accepted.status, accepted.reason) == ("False", "Disagreement")
        await world.undefine("second")
        await moment()
        accepted = await world.condition("blue", "Accepted")
        assert accepted is not None
        assert (accepted.status, accepted.reason) == ("True", "AsStated")


async def test_a_range_that_is_not_cut_does_not_keep_the_others_from_being_in_force() -> None:
    async with a_network_world("n1") as world:
        mixed = [{"range": "10.0.0.0/16", "node_slice_size": "/24"}, {"range": "fd00::/48"}]
        await world.define(
            "mixed", conf(ipam(range=None, node_slice_size=None, network_name="blue", ipRanges=mixed))
        )
        await world.start()
        await world.define(
            "other", conf(ipam(network_name="blue", range="10.0.0.0/16", node_slice_size="/26"))
        )
        await moment()
        assert await world.events(NetworkAttachmentDefinition, "mixed") == []
        assert [reason for reason, _ in await world.events(NetworkAttachmentDefinition, "other")] == [
            "Disagreement"
        ]


async def test_the_older_definition_counts_also_after_a_restart_and_whatever_it_is_called() -> None:
    async with a_network_world("n1") as world:
        await world.define("zebra", conf(ipam(network_name="blue")))
        await world.start()
        await world.define("ant", conf(ipam(network_name="blue", node_slice_size="/26")))
        await moment()
        await world.start()
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24"}
        assert await world.events(NetworkAttachmentDefinition, "zebra") == []


async def test_where_nothing_is_in_force_definitions_that_disagree_make_nothing() -> None:
    async with a_network_world("n1") as world:
        await world.define("one", conf(ipam(network_name="blue")))
        await world.define("two", conf(ipam(network_name="blue", node_slice_size="/26")))
        await world.start()
        assert await world.names(NodeSlicePool) == []
        for name in ("one", "two"):
            [(reason, message)] = await world.events(NetworkAttachmentDefinition, name)
            assert reason == "Disagreement"
            assert "nothing is in force" in message


async def test_when_both_of_two_are_changed_the_change_waits_for_the_second() -> None:
    async with a_network_world("n1") as world:
        for name in ("one", "two"):
            await world.define(name, conf(ipam(network_name="blue")))
        await world.start()
        await world.define("one", conf(ipam(network_name="blue", range="10.0.0.0/20")))
        await moment()
        assert (await world.slice_pool("blue")).spec.range == "10.0.0.0/22"
        await world.define("two", conf(ipam(network_name="blue", range="10.0.0.0/20")))
        await moment()
        assert (await world.slice_pool("blue")).spec.range == "10.0.0.0/20"
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24"}


async def test_classic_definitions_of_one_name_may_have_different_ranges() -> None:
    async with a_network_world("n1") as world:
        await world.define("one", conf(ipam(network_name="blue", node_slice_size=None)))
        await world.define("two", conf(ipam(network_name="blue", range="10.9.0.0/16", node_slice_size=None)))
        await world.define("three", conf(ipam(network_name="blue", range="10.8.0.0/16")))
        await world.start()
        assert await world.assigned("blue") == {"n1": "10.8.0.0/24"}
        for name in ("one", "two", "three"):
            assert await world.events(NetworkAttachmentDefinition, name) == []


async def test_a_network_that_wants_the_name_of_another_is_told() -> None:
    async with a_network_world("n1") as world:
        ranges = [
            {"range": "10.0.0.0/16", "node_slice_size": "/24"},
            {"range": "fd00::/48", "node_slice_size": "/64"},
        ]
        await world.define(
            "dual", conf(ipam(range=None, node_slice_size=None, network_name="blue", ipRanges=ranges))
        )
        await world.start()
        await world.define("clash", conf(ipam(network_name="blue-fd00---48")))
        await moment(600)
        pools = (await world.cluster.list(NodeSlicePool)).items
        assert sorted(pool.metadata.name for pool in pools) == ["blue", "blue-fd00---48"]
        assert await world.assigned("blue-fd00---48") == {"n1": "fd00::/64"}
        assert await world.events(NetworkAttachmentDefinition, "dual") == []
        [(reason, message)] = await world.events(NetworkAttachmentDefinition, "clash")
        assert reason == "NameTaken"
        assert "the NodeSlicePool blue-fd00---48 is another network's" in message
