"""Two replicas of the allocator on one database: whichever is killed at whichever await, the other goes on."""

from random import Random

import pytest
from msgspec import structs

from podtide.allocator.containers import Wish
from podtide.allocator.errors import AllocatorUnavailable
from podtide.allocator.store import StoreRules
from podtide.allocator.subnets import SubnetSpec
from podtide.runtime.clock import LoopClock
from podtide.simulation.faults.table import ALL, NONE, chosen_faults
from podtide.simulation.run.fault_plan import fault_plan_for
from podtide.simulation.run.simulate import simulate
from podtide.simulation.world.restartable_allocator import open_restartable_allocator

WISH = Wish(
    id="c",
    count=3,
    generation=1,
    network="blue",
    subnet="pods",
    cluster="east",
    node="node-c",
    request_uid="uid",
)
KILLED = "replica-killed"


@pytest.mark.parametrize("moments", range(1, 5))
async def test_a_call_that_a_replica_was_killed_in_is_carried_out_once_by_the_other(moments: int) -> None:
    async with open_restartable_allocator(
        clock=LoopClock(), rules=StoreRules(), chance_of_replicas=Random(1)
    ) as allocator:
        replicas = allocator.replicas
        assert replicas is not None
        await allocator.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.0.0.0/27",)))
        before = (await allocator.get_subnet("blue", "pods")).reserved
        replicas.kill_in(moments, 0)
        replicas.kill_in(moments, 1)
        for _call in range(2 * moments):
            if not replicas.running:
                break
            try:
                container = await replicas.put_container(WISH)
            except AllocatorUnavailable:
                continue
            assert len(container.addresses) == WISH.count
        assert not replicas.running
        with pytest.raises(AllocatorUnavailable, match="no replica"):
            await replicas.put_container(WISH)
        await replicas.start(1)
        assert replicas.running == [1]
        assert len((await replicas.put_container(WISH)).addresses) == WISH.count
        assert (await allocator.get_subnet("blue", "pods")).reserved - before == 1 + WISH.count


@pytest.mark.parametrize(("seed", "others"), [(1, NONE), pytest.param(2, ALL, marks=pytest.mark.slow)])
def test_the_invariants_hold_while_replicas_are_killed_within_calls(seed: int, others: str) -> None:
    plan = fault_plan_for(seed, nodes=3, faults=chosen_faults(others) | {KILLED}, trouble_seconds=100.0)
    report = simulate(structs.replace(plan, replicas=True, has_drawn_order=True))
    assert report.failure == ""
    assert report.faults[KILLED] > 0


def test_one_process_alone_is_no_replica() -> None:
    plan = fault_plan_for(1, nodes=1, faults=chosen_faults(KILLED), trouble_seconds=60.0)
    assert any(mishap.fault == KILLED for mishap in plan.mishaps)
    assert KILLED not in simulate(plan).faults
