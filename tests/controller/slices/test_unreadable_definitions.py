"""A definition that cannot be read keeps what it may be about, and nothing else."""

import pytest

from controller.slices.network_world import QUARANTINE, a_network_world, conf, ipam, moment
from podtide.resources.ip_pool import IPPool
from podtide.resources.node_slice_pool import NodeSlicePool

BLUE = conf(ipam(network_name="blue"), name="blue-conf")
RED = conf(ipam(network_name="red", range="10.9.0.0/22"), name="red-conf")


@pytest.mark.parametrize("broken", [RED[:-1], conf(ipam(range="10.9.0.0/99")), '{"type":"whereabouts"'])
async def test_one_that_means_another_network_keeps_no_slices_of_those_that_are_gone(broken: str) -> None:
    async with a_network_world("n1") as world:
        await world.define("broken", broken)
        await world.define("blue", BLUE)
        await world.start()
        assert await world.names(IPPool) == ["blue-n1"]
        await world.undefine("blue")
        await moment()
        assert await world.names(NodeSlicePool) == await world.names(IPPool) == []


async def test_it_does_so_also_where_the_definition_went_while_no_controller_ran() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        replica = await world.start()
        await replica.stop()
        await world.undefine("blue")
        await world.define("broken", RED[:-1])
        await world.start()
        assert await world.names(NodeSlicePool) == await world.names(IPPool) == []


async def test_what_it_described_before_is_kept_even_if_no_word_of_it_is_left() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        await world.define("red", RED)
        await world.start()
        await world.define("blue", '{"type":"whereabouts"')
        await moment()
        await world.define("blue", '{"type": "podtide"')
        await world.undefine("red")
        await moment(600)
        assert await world.names(IPPool) == ["blue-n1"]
        assert await world.assigned("blue") == {"n1": "10.0.0.0/24"}
        await world.undefine("blue")
        await moment()
        assert await world.names(IPPool) == []


@pytest.mark.parametrize("broken", [BLUE[:-1], conf(ipam(network_name="blue", range="10.0.0.0/99"))])
async def test_what_it_names_is_kept_also_by_the_next_controller(broken: str) -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", BLUE)
        replica = await world.start()
        await replica.stop()
        await world.define("blue", broken)
        await world.start()
        await moment(600)
        assert await world.names(IPPool) == ["blue-n1"]


async def test_an_unnamed_network_is_known_by_its_addresses() -> None:
    async with a_network_world("n1") as world:
        text = conf(ipam(range="10.0.0.0/22"))
        await world.define("unnamed", text)
        replica = await world.start()
        await replica.stop()
        await world.define("unnamed", conf(ipam(range="10.0.0.7/22"))[:-1])
        await world.start()
        await moment(600)
        assert await world.names(IPPool) == ["10.0.0.0-22-n1"]


async def test_the_shared_pool_of_a_classic_network_goes_though_another_definition_cannot_be_read() -> None:
    async with a_network_world("n1") as world:
        await world.define("broken", RED[:-1])
        await world.define("shared", conf(ipam(node_slice_size=None)))
        await world.add_pool("10.0.0.0-22", "10.0.0.0/22")
        await world.start()
        await world.undefine("shared")
        await moment()
        assert await world.names(IPPool) == []


async def test_a_pool_of_no_network_goes_though_a_definition_of_another_cannot_be_read() -> None:
    async with a_network_world("n1") as world:
        await world.add_pool("10.0.0.0-22", "10.0.0.0/22")
        await world.define("broken", RED[:-1])
        await world.start()
        await moment(QUARANTINE + 10)
        assert await world.names(IPPool) == []
