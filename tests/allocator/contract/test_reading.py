"""Lists, and how full a subnet is and was."""

import pytest

from allocator.contract.harness import OpenAllocator
from podtide.core.errors import InvalidInput


async def test_containers_are_listed_by_id_a_page_at_a_time(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/26")
        put = [await under.put(f"n{number}", 1) for number in (3, 1, 4, 5, 2)]
        listed, more = [], ""
        for _ in range(3):
            page = await under.allocator.list_containers(limit=2, more=more)
            listed.append([container.id for container in page.items])
            more = page.more
        assert listed == [["n1", "n2"], ["n3", "n4"], ["n5"]]
        assert not more
        whole = await under.allocator.list_containers()
        assert list(whole.items) == sorted(put, key=lambda container: container.id)
        assert not whole.more


async def test_a_list_is_narrowed_by_cluster_node_network_and_subnet(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/26")
        await under.subnet("10.2.0.0/26", name="others")
        await under.subnet("10.1.0.0/26", network="green")
        await under.put("a", 1)
        await under.put("b", 1, cluster="west")
        await under.put("c", 1, subnet="others")
        await under.put("d", 1, network="green")
        for narrowed, ids in (
            ({"cluster": "east"}, "acd"),
            ({"cluster": "west"}, "b"),
            ({"node": "node-c"}, "c"),
            ({"network": "blue"}, "abc"),
            ({"network": "blue", "subnet": "pods", "cluster": "east"}, "a"),
            ({"cluster": "north"}, ""),
        ):
            page = await under.allocator.list_containers(**narrowed)  # type: ignore[arg-type]  # strings, as the table says
            assert "".join(container.id for container in page.items) == ids, narrowed


async def test_a_page_holds_at_least_one(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        with pytest.raises(InvalidInput):
            await under.allocator.list_containers(limit=0)


async def test_utilization_is_one_reading_of_capacity_and_reserved(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.put("a", 3)
        (reading,) = await under.allocator.utilization("blue", "pods")
        assert (reading.capacity, reading.reserved) == (13, 4)


async def test_history_goes_from_the_oldest_reading_to_the_newest(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        begun = under.clock.wall()
        for generation, count in enumerate((1, 4, 8), start=1):
            await under.put("a", count, generation)
            under.clock.pass_by(3600)
        readings = await under.allocator.history("blue", "pods", since=begun, until=under.clock.wall())
        assert [reading.timestamp for reading in readings] == sorted(
            reading.timestamp for reading in readings
        )
        assert readings[-1].reserved == 9
        assert {reading.capacity for reading in readings} == {13}
        assert await under.allocator.history("blue", "pods", since=0, until=begun - 7200) == ()
