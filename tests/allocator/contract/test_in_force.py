"""What is in force in a subnet is changed by whoever decided from what is so, and by nobody else."""

import asyncio

import pytest
from msgspec.structs import replace

from allocator.contract.harness import QUARANTINE_SECONDS, OpenAllocator
from podtide.allocator.errors import InForceConflict, NoSuchSubnet
from podtide.allocator.subnets import SubnetInForce
from podtide.core.errors import InvalidInput

SIXTEEN = SubnetInForce(
    batch=16, buffer="0.5", top=16, step="BatchConfigured", reason="nothing was decided yet"
)
FOUR = replace(SIXTEEN, batch=4, exhausted=True, step="BatchReduced", reason="R = 60 > T·Q = 54", serial=1)


async def test_nothing_is_in_force_until_it_was_decided(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        under.clock.pass_by(100)
        assert (await under.stands()).in_force == SubnetInForce()


async def test_what_was_decided_is_in_force_with_the_next_serial(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        answer = await under.allocator.put_in_force("blue", "pods", SIXTEEN)
        assert answer.in_force == replace(SIXTEEN, serial=1)
        assert answer == await under.stands()
        assert (await under.allocator.list_subnets()) == (answer,)
        starved = replace(FOUR, starved=True, buffer="0", batch=1)
        await under.allocator.put_in_force("blue", "pods", starved)
        assert (await under.stands()).in_force == replace(starved, serial=2)


async def test_whoever_decided_from_something_else_is_overtaken(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.allocator.put_in_force("blue", "pods", SIXTEEN)
        await under.allocator.put_in_force("blue", "pods", FOUR)
        before = await under.stands()
        for serial in (0, 1, 3):
            with pytest.raises(InForceConflict):
                await under.allocator.put_in_force("blue", "pods", replace(SIXTEEN, batch=2, serial=serial))
        with pytest.raises(InForceConflict):  # it was in force, but is no more
            await under.allocator.put_in_force("blue", "pods", SIXTEEN)
        assert await under.stands() == before


async def test_a_decision_whose_answer_was_lost_is_made_again_for_nothing(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        await under.allocator.put_in_force("blue", "pods", SIXTEEN)
        first = await under.allocator.put_in_force("blue", "pods", FOUR)
        under.clock.pass_by(5)
        again = await under.allocator.put_in_force("blue", "pods", FOUR)
        assert replace(again.in_force, age_seconds=0) == first.in_force
        assert (again.in_force.serial, again.in_force.age_seconds) == (2, 5)
        for serial in (0, 3):  # the same, but decided from something else
            with pytest.raises(InForceConflict):
                await under.allocator.put_in_force("blue", "pods", replace(FOUR, serial=serial))
        for other in ({"reason": "another"}, {"exhausted": False}, {"top": 8}, {"step": "Fed"}):
            with pytest.raises(InForceConflict):
                await under.allocator.put_in_force("blue", "pods", replace(FOUR, **other))


async def test_of_many_that_decide_at_once_one_prevails(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        outcomes = await asyncio.gather(
            *(
                under.allocator.put_in_force("blue", "pods", replace(SIXTEEN, batch=batch))
                for batch in range(1, 9)
            ),
            return_exceptions=True,
        )
        assert sum(isinstance(outcome, InForceConflict) for outcome in outcomes) == 7
        assert (await under.stands()).in_force.serial == 1


async def test_the_age_is_that_of_batch_buffer_and_starved(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        await under.subnet()
        decided, serial = SIXTEEN, 0
        for change, age in (
            ({}, 0),
            ({"exhausted": True}, 10),
            ({"reason": "another", "step": "Unchanged", "top": 32}, 20),
            ({"batch": 8}, 0),
            ({"buffer": "0.25"}, 0),
            ({"buffer": "1/4"}, 10),
            ({"starved": True}, 0),
            ({"starved": False}, 0),
        ):
            decided = replace(decided, serial=serial, age_seconds=99, **change)
            answer = await under.allocator.put_in_force("blue", "pods", decided)
            assert answer.in_force.age_seconds == age, change
            serial = answer.in_force.serial
            under.clock.pass_by(10)
        assert (await under.stands()).in_force.age_seconds == 10
        under.clock.pass_by(-30)
        assert (await under.stands()).in_force.age_seconds == -20


async def test_what_is_in_force_outlives_whatever_happens_in_the_subnet(
    open_allocator: OpenAllocator,
) -> None:
    async with open_allocator() as under:
        await under.subnet("10.1.0.0/29")
        before = (await under.allocator.put_in_force("blue", "pods", SIXTEEN)).in_force
        await under.put("a", 3)
        await under.allocator.grow_subnet("blue", "pods", ("10.1.0.8/29",))
        await under.delete("a")
        await under.pass_quarantine()
        stands = await under.stands()
        assert stands.reserved == 0
        assert stands.in_force == replace(before, age_seconds=QUARANTINE_SECONDS + 1)
        assert await under.subnet("10.1.0.0/29") == stands


@pytest.mark.parametrize(
    "change",
    [
        {"batch": 0},
        {"batch": 2**70},
        {"buffer": "-1"},
        {"buffer": "a half"},
        {"buffer": "1/0"},
        {"top": -1},
        {"serial": -1},
        {"step": "x" * 64},
        {"reason": "x" * 1_025},
        {"reason": "\0"},
    ],
    ids=str,
)
async def test_what_no_node_could_go_by_is_refused(
    open_allocator: OpenAllocator, change: dict[str, object]
) -> None:
    async with open_allocator() as under:
        await under.subnet()
        with pytest.raises(InvalidInput):
            await under.allocator.put_in_force("blue", "pods", replace(SIXTEEN, **change))
        assert (await under.stands()).in_force == SubnetInForce()


async def test_nothing_is_put_in_force_where_there_is_no_subnet(open_allocator: OpenAllocator) -> None:
    async with open_allocator() as under:
        with pytest.raises(NoSuchSubnet):
            await under.allocator.put_in_force("blue", "pods", SIXTEEN)
