"""`compare_and_swap`."""

import asyncio

import pytest

from cluster.contract.harness import MANAGER, ClusterUnderTest, OpenCluster
from podtide.cluster.port import Conflict, Invalid, NotFound, PartSwap
from podtide.resources.ip_pool import IPPool

ALLOCATIONS = ("spec", "allocations")


def given(offset: str, podref: str) -> PartSwap:
    """An address that must be free, and is to be a pod's."""
    entry = {"id": f"sandbox-{podref}", "podref": podref}
    return PartSwap(path=(*ALLOCATIONS, offset), before=None, after=entry)


def freed(offset: str, podref: str) -> tuple[PartSwap, PartSwap]:
    """An address that must be a pod's, and is to be free."""
    place = (*ALLOCATIONS, offset)
    return PartSwap(path=(*place, "podref"), before=podref), PartSwap(path=place, after=None)


async def swap(it: ClusterUnderTest, *parts: PartSwap) -> IPPool:
    return await it.cluster.compare_and_swap(IPPool, "pool-a", it.namespace, parts=parts, manager=MANAGER)


async def test_parts_that_are_as_they_must_be_change_and_the_rest_stays(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.pool(_1="a", _2="b"))
        count = PartSwap(path=("status",), after={"used": 2})
        put = await swap(it, *freed("1", "a"), given("3", "c"), count)
        assert {key: entry.podref for key, entry in put.spec.allocations.items()} == {"2": "b", "3": "c"}
        assert put.status is not None
        assert put.status.used == 2
        assert put.metadata.resource_version != made.metadata.resource_version
        assert await it.cluster.get(IPPool, "pool-a", it.namespace) == put


@pytest.mark.parametrize(
    "refused",
    [
        (given("1", "c"),),
        freed("1", "c"),
        freed("2", "a"),
        (PartSwap(path=("metadata", "uid"), before="00000000-0000-4000-8000-000000000000"),),
        (PartSwap(path=("metadata", "resourceVersion"), before="1"),),
    ],
    ids=["taken", "another's", "free", "another object", "another version"],
)
async def test_where_one_part_is_not_as_it_must_be_none_changes(
    open_cluster: OpenCluster, refused: tuple[PartSwap, ...]
) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.pool(_1="a"))
        with pytest.raises(Conflict):
            await swap(it, given("3", "d"), *refused)
        assert await it.cluster.get(IPPool, "pool-a", it.namespace) == made


async def test_those_who_change_different_parts_at_once_all_succeed_and_of_one_part_one_does(
    open_cluster: OpenCluster,
) -> None:
    async with open_cluster() as it:
        await it.create(it.pool())
        swaps = [swap(it, given(str(1 + number % 10), f"pod-{number}")) for number in range(20)]
        outcomes = await asyncio.gather(*swaps, return_exceptions=True)
        assert sum(isinstance(each, Conflict) for each in outcomes) == 10
        assert sum(isinstance(each, IPPool) for each in outcomes) == 10
        now = await it.cluster.get(IPPool, "pool-a", it.namespace)
        assert set(now.spec.allocations) == {str(number) for number in range(1, 11)}


async def test_a_swap_makes_no_object(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        with pytest.raises(NotFound):
            await swap(it, given("1", "a"))


async def test_what_a_swap_makes_must_be_valid(open_cluster: OpenCluster) -> None:
    async with open_cluster() as it:
        (made,) = await it.create(it.pool())
        with pytest.raises(Invalid):
            await swap(it, PartSwap(path=(*ALLOCATIONS, "1"), before=None, after={"podref": 7}))
        assert await it.cluster.get(IPPool, "pool-a", it.namespace) == made
