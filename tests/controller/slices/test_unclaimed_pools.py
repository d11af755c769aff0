"""The pool of a classic network goes also where its definition went while no controller ran; nobody else's does."""

from typing import Any

import pytest
from msgspec import structs

from controller.slices.network_world import QUARANTINE, a_network_world, conf, ipam, moment
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import NODE_ANNOTATION

POOL = "blue-10.0.0.0-22"
CLASSIC = conf(ipam(network_name="blue", node_slice_size=None))


@pytest.mark.parametrize(
    ("name", "range_"),
    [(POOL, "10.0.0.0/22"), ("10.0.0.0-22", "10.0.0.0/22"), ("blue-fd00---64", "fd00::/64")],
    ids=["named", "unnamed", "IPv6"],
)
async def test_an_empty_pool_that_no_definition_asks_for_goes_when_it_is_old(name: str, range_: str) -> None:
    async with a_network_world("n1") as world:
        await world.add_pool(name, range_)
        await world.start()
        await moment(QUARANTINE - 10)
        assert await world.names(IPPool) == [name], "its definition may be on the way"
        await moment(20)
        assert await world.names(IPPool) == []


async def test_a_definition_that_went_while_no_controller_ran_leaves_no_pool_for_ever() -> None:
    async with a_network_world("n1") as world:
        await world.define("blue", CLASSIC)
        replica = await world.start()
        await world.add_pool(POOL, "10.0.0.0/22", 5)
        await moment(QUARANTINE + 10)
        await replica.stop()
        await world.undefine("blue")
        await world.start()
        assert await world.names(IPPool) == [POOL], "a pod has an address of it"
        await world.hold(POOL)
        await moment()
        assert await world.names(IPPool) == []


async def test_a_pool_that_a_definition_asks_for_stays_however_empty_and_old() -> None:
    async with a_network_world("n1") as world:
        await world.add_pool(POOL, "10.0.0.0/22")
        await moment(2 * QUARANTINE)
        await world.define("blue", CLASSIC)
        await world.start()
        await moment(2 * QUARANTINE)
        assert await world.names(IPPool) == [POOL]


async def test_while_a_definition_cannot_be_read_no_pool_is_taken_for_nobodys() -> None:
    async with a_network_world("n1") as world:
        await world.add_pool(POOL, "10.0.0.0/22")
        await world.define("broken", conf(ipam(range="10.0.0.0/99")))
        await world.start()
        await moment(3 * QUARANTINE)
        assert await world.names(IPPool) == [POOL]
        await world.undefine("broken")
        await moment(QUARANTINE + 10)
        assert await world.names(IPPool) == []


async def test_a_pool_within_the_range_of_another_network_stays_while_that_is_there() -> None:
    """A pool of Whereabouts for a node's slice is called like that of a network with the node's name."""
    async with a_network_world() as world:
        await world.add_pool("n1-10.0.1.0-24", "10.0.1.0/24")
        await world.define("blue", conf(ipam(network_name="blue")))
        await world.start()
        await moment(3 * QUARANTINE)
        assert await world.names(IPPool) == ["n1-10.0.1.0-24"]
        await world.undefine("blue")
        await moment(QUARANTINE + 10)
        assert await world.names(IPPool) == []


async def test_a_pool_within_a_list_of_slices_stays_while_that_is_there() -> None:
    async with a_network_world("n2") as world:
        await world.define("blue", conf(ipam(network_name="blue")))
        await world.start()
        await world.hold("blue-n2", 5)
        await world.undefine("blue")
        await world.add_pool("n1-10.0.1.0-24", "10.0.1.0/24")
        await moment(3 * QUARANTINE)
        assert await world.names(IPPool) == ["blue-n2", "n1-10.0.1.0-24"]
        await world.hold("blue-n2")
        await moment(QUARANTINE + 10)
        assert await world.names(IPPool) == []


async def test_a_pool_that_is_called_otherwise_or_is_a_nodes_own_is_left_alone() -> None:
    async with a_network_world("n1") as world:
        await world.add_pool("by-hand", "10.0.0.0/22")
        marked = await world.add_pool("blue-10.1.0.0-24", "10.1.0.0/24")
        place = structs.replace(marked.metadata, annotations={NODE_ANNOTATION: "n1"})
        await world.cluster.replace(structs.replace(marked, metadata=place), manager="kubectl")
        await world.start()
        await moment(3 * QUARANTINE)
        assert await world.names(IPPool) == ["blue-10.1.0.0-24", "by-hand"]


async def test_a_pool_that_is_used_at_the_last_instant_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_network_world("n1") as world:
        await world.add_pool(POOL, "10.0.0.0/22")
        await moment(2 * QUARANTINE)
        delete = world.cluster.delete

        async def delete_too_late(*whom: Any, **version: Any) -> None:
            monkeypatch.undo()
            await world.hold(POOL, 5)
            await delete(*whom, **version)

        monkeypatch.setattr(world.cluster, "delete", delete_too_late)
        await world.start()
        await moment(QUARANTINE + 10)
        assert set((await world.pool(POOL)).spec.allocations) == {"5"}
