import asyncio

import pytest

from agent.node_bench import Bench, container, ips, owner
from cluster.faulty_cluster import Script
from podtide.agent.port import NoAddress, NotAssigned, NotReady, OutOfContact, Overtaken, PodAddress
from podtide.cluster.port import Unavailable
from podtide.core.pool.states import State
from podtide.resources.conditions import Condition, ConditionStatus
from podtide.resources.node_network_config import ScalerStatus
from podtide.runtime.disk import DiskFull
from podtide.runtime.settings import Settings

QUICK = Settings(add_wait_seconds=1.0)


async def full_bench(bench: Bench, held: int = 2) -> list[str]:
    """A node in a starved subnet whose addresses are all taken."""
    bench.capacity = held
    await bench.join()
    await bench.make_subnet(batch=1, buffer=0.0, exhausted=True, starved=True)
    return [f"full-{number}" for number in range(held)]


async def test_an_add_is_answered_from_the_pool_without_a_call_to_the_cluster() -> None:
    bench = Bench()
    await bench.join()
    pod = await bench.schedule("pod")
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        calls = bench.cluster.calls.copy()
        [given] = await agent.addresses.add(owner("sandbox", pod), arrived=bench.clock.monotonic())
        assert given == PodAddress(
            ip=given.ip,
            subnet="10.0.0.0/16",
            gateway="10.0.0.1",
            container=given.container,
            primary="10.0.255.254",
        )
        assert given.ip.startswith("10.0.")
        assert bench.cluster.calls == calls


async def test_the_same_sandbox_gets_the_same_address_again() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running():
        first = await bench.add("sandbox")
        assert await bench.add("sandbox") == first
        assert await bench.add("another") != first


async def test_the_same_sandbox_gets_the_same_address_after_a_restart() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller():
        async with bench.running():
            first = await bench.add("sandbox")
        async with bench.running(sync=False):
            assert await bench.add("sandbox") == first
            assert await bench.add("another") != first


async def test_an_add_before_the_agent_has_seen_everything_waits_for_that() -> None:
    bench = Bench(faults=Script(list=[3.0]))
    await bench.join()
    async with bench.controller(), bench.running(sync=False) as agent:
        with pytest.raises(NotReady):
            agent.addresses.require_ready()
        assert await bench.add("sandbox")
        assert agent.synced.is_set()
        agent.addresses.require_ready()


async def test_an_add_that_waits_in_vain_for_the_cluster_says_what_is_missing() -> None:
    bench = Bench(settings=QUICK)
    await bench.join(fill_in=False)
    async with bench.running(sync=False):
        with pytest.raises(NotReady, match="no network container yet"):
            await bench.add("sandbox")


async def test_adds_that_find_no_address_are_served_first_come_first_served() -> None:
    bench = Bench()
    await bench.join()
    async with bench.running():
        order: list[str] = []

        async def add(name: str) -> None:
            await bench.add(name)
            order.append(name)

        waiting = [asyncio.create_task(add(f"s-{number}")) for number in range(20)]
        await bench.settle(1)
        assert order == []
        bench.capacity = 15
        await bench.grant()
        await bench.settle(1)
        assert order == [f"s-{number}" for number in range(15)]
        bench.capacity = 20
        await bench.grant()
        await asyncio.gather(*waiting)
        assert order == [f"s-{number}" for number in range(20)]


async def test_whoever_comes_later_does_not_overtake_those_who_wait() -> None:
    bench = Bench(settings=QUICK)
    sandboxes = await full_bench(bench)
    async with bench.controller(), bench.running():
        for sandbox in sandboxes:
            await bench.add(sandbox)
        first = asyncio.create_task(bench.add("first"))
        await bench.settle(0.5)
        second = asyncio.create_task(bench.add("second"))
        await bench.settle(0.1)
        [freed] = bench.delete(sandboxes[0])
        third = asyncio.create_task(bench.add("third"))
        assert await first == (freed,)
        for late in (second, third):
            with pytest.raises(NoAddress):
                await late


async def test_concurrent_adds_of_one_sandbox_wait_once_and_get_the_same() -> None:
    bench = Bench()
    sandboxes = await full_bench(bench)
    async with bench.controller(), bench.running():
        for sandbox in sandboxes:
            await bench.add(sandbox)
        twins = [asyncio.create_task(bench.add("twin")) for _ in range(3)]
        other = asyncio.create_task(bench.add("other"))
        await bench.settle(1)
        bench.delete(sandboxes[0])
        bench.delete(sandboxes[1])
        answers = await asyncio.gather(*twins)
        assert len(set(answers)) == 1
        assert await other not in answers


async def test_a_wait_ends_with_the_reason_in_words_and_numbers() -> None:
    bench = Bench(settings=QUICK)
    sandboxes = await full_bench(bench)
    async with bench.controller(), bench.running() as agent:
        for sandbox in sandboxes:
            await bench.add(sandbox)
        config = await bench.config()
        owed = Condition(
            type="Granted",
            status=ConditionStatus.FALSE,
            last_transition_time="2026-01-01T00:00:00Z",
            reason="SubnetShort",
            message="subnet pods: 2 addresses held, 3 asked for, 1 owed",
        )
        fine = Condition(
            type="Placed",
            status=ConditionStatus.TRUE,
            last_transition_time="2026-01-01T00:00:00Z",
            reason="AsStated",
            message="all is well",
        )
        await bench.fill_in(config.status.network_containers, conditions=[owed, fine])
        pod = await bench.schedule("unlucky")
        with pytest.raises(NoAddress) as refused:
            await bench.add("sandbox", pod)
        assert str(refused.value) == (
            "no address for pod default/unlucky within 1s: the node asks for 3, holds 2 and has 2 assigned; "
            "1 pods wait; subnet pods is used up; the request controller says: "
            "subnet pods: 2 addresses held, 3 asked for, 1 owed"
        )
        agent.addresses.require_ready()


async def test_a_node_that_has_all_it_may_have_says_so() -> None:
    bench = Bench(settings=QUICK)
    config = await bench.join()
    await bench.fill_in(config.status.network_containers, scaler=ScalerStatus(max_ip_count=3))
    async with bench.controller(), bench.running():
        for number in range(3):
            await bench.add(f"sandbox-{number}")
        with pytest.raises(NoAddress, match="; 3 are the most that a node may have"):
            await bench.add("one-too-many")


async def test_without_a_wait_a_full_pool_refuses_at_once() -> None:
    bench = Bench(settings=Settings(add_wait_seconds=0.0))
    await bench.join()
    async with bench.running():
        before = bench.clock.monotonic()
        with pytest.raises(NoAddress):
            await bench.add("sandbox")
        assert bench.clock.monotonic() == before


async def test_a_caller_that_gave_up_takes_no_address_later() -> None:
    bench = Bench()
    await bench.join()
    async with bench.running() as agent:
        waiting = asyncio.create_task(bench.add("impatient"))
        await bench.settle(1)
        waiting.cancel()
        await bench.settle(0.1)
        await bench.grant()
        await bench.settle(1)
        assert agent.addresses.state().demand == 0


async def test_a_del_cancels_an_add_that_waits() -> None:
    bench = Bench()
    await bench.join()
    async with bench.running() as agent:
        waiting = asyncio.create_task(bench.add("sandbox"))
        await bench.settle(1)
        assert bench.delete("sandbox") == ()
        with pytest.raises(Overtaken):
            await waiting
        await bench.grant()
        await bench.settle(1)
        assert agent.addresses.state().demand == 0


async def test_a_del_beats_an_add_that_arrived_before_it_and_comes_later() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        arrived = bench.clock.monotonic()
        await bench.settle(1)
        bench.delete("sandbox")
        with pytest.raises(Overtaken):
            await agent.addresses.add(owner("sandbox"), arrived=arrived)
        assert await bench.add("sandbox"), "an ADD that arrives after the DEL is another one"


async def test_a_del_of_the_unknown_succeeds_and_says_so_by_freeing_nothing() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running():
        assert bench.delete("never-heard-of") == ()


async def test_a_freed_address_is_free_once_and_goes_to_the_next() -> None:
    bench = Bench()
    sandboxes = await full_bench(bench, 1)
    async with bench.controller(), bench.running():
        [address] = await bench.add(sandboxes[0])
        assert bench.delete(sandboxes[0]) == (address,)
        assert bench.delete(sandboxes[0]) == ()
        assert await bench.add("next") == (address,)


async def test_wanted_addresses_are_given_when_free_and_waited_for_without_holding_up_others() -> None:
    bench = Bench(settings=QUICK)
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        free = [address.ip for address in agent.addresses.all_addresses()]
        assert await bench.add("picky", wanted=(free[7],)) == (free[7],)
        waiting = asyncio.create_task(bench.add("too-late", wanted=(free[7],)))
        await bench.settle(0.1)
        assert await bench.add("modest")
        with pytest.raises(NoAddress, match=f"wanted is {free[7]}"):
            await waiting


async def test_a_pool_with_two_families_gives_both_or_nothing() -> None:
    bench = Bench(settings=QUICK)
    await bench.join(container("four"), container("six", subnet="pods-v6", family=6))
    async with bench.running() as agent:
        await bench.settle()
        config = await bench.config()
        four, six = config.status.network_containers
        await bench.fill_in([bench._granted(four, config.spec), six])
        with pytest.raises(NoAddress):
            await bench.add("sandbox")
        assert agent.addresses.state().counts[State.ASSIGNED] == 0
        await bench.grant()
        assert len(await bench.add("sandbox")) == 2


async def test_an_add_that_waits_gets_both_families_when_both_come_at_once() -> None:
    bench = Bench()
    four, six = container("four"), container("six", subnet="pods-v6", family=6)
    await bench.join(four)
    async with bench.running():
        waiting = asyncio.create_task(bench.add("sandbox"))
        await bench.settle(1)
        spec = (await bench.config()).spec
        await bench.fill_in([bench._granted(each, spec) for each in (four, six)])
        assert len(await waiting) == 2


async def test_check_answers_what_is_held_and_refuses_what_is_not() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        held = await bench.add("sandbox")
        assert ips(agent.addresses.check(owner("sandbox"))) == held
        with pytest.raises(NotAssigned):
            agent.addresses.check(owner("another"))


async def test_garbage_is_collected_in_its_own_network_alone() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        for sandbox in ("a", "b", "c"):
            await bench.add(sandbox)
        assert agent.addresses.collect_garbage("other-net", frozenset()) == 0
        assert agent.addresses.collect_garbage("net", frozenset({("b", "eth0")})) == 2
        assert agent.addresses.state().demand == 1
        assert agent.addresses.check(owner("b"))


async def test_out_of_contact_nothing_new_is_given_and_nothing_is_taken_away() -> None:
    down = Script()
    bench = Bench(faults=down, settings=Settings(contact_timeout_seconds=60.0, quarantine_seconds=120.0))
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        held = await bench.add("before")
        for call in ("list", "watch"):
            down.steps[call] = [Unavailable("down")] * 1000
        bench.server.server.close_watches()
        await bench.settle(50)
        assert await bench.add("in-time")
        await bench.settle(50)
        assert not agent.addresses.state().in_contact
        with pytest.raises(OutOfContact):
            await bench.add("too-late")
        assert await bench.add("before") == held
        assert bench.delete("before") == held
        down.steps.clear()
        await bench.settle(200)
        assert await bench.add("back-again")


async def test_a_full_disk_refuses_the_add_and_leaves_the_pool_as_it_was() -> None:
    bench = Bench()
    await bench.join()
    async with bench.controller(), bench.running() as agent:
        await bench.settle()
        bench.disk.full = True
        with pytest.raises(DiskFull):
            await bench.add("sandbox")
        assert agent.addresses.state().counts[State.ASSIGNED] == 0
        bench.disk.full = False
        assert await bench.add("sandbox")


async def test_grants_that_come_while_the_disk_is_full_are_taken_in_when_there_is_room() -> None:
    bench = Bench(settings=Settings(add_wait_seconds=100.0))
    await bench.join()
    async with bench.running():
        await bench.settle()
        bench.disk.full = True
        await bench.grant()
        waiting = asyncio.create_task(bench.add("sandbox"))
        await bench.settle()
        assert not waiting.done()
        bench.disk.full = False
        assert await waiting


async def test_who_waits_hears_of_a_full_disk() -> None:
    bench = Bench()
    sandboxes = await full_bench(bench)
    async with bench.controller(), bench.running() as agent:
        for sandbox in sandboxes:
            await bench.add(sandbox)
        waiting = asyncio.create_task(bench.add("waiting"))
        await bench.settle(1)
        free = agent._journaled.pool.free

        def free_then_fill(sandbox: str, interface: str, now: float) -> object:
            freed = free(sandbox, interface, now)
            bench.disk.full = True
            return freed

        agent._journaled.pool.free = free_then_fill  # type: ignore[assignment,method-assign] # the disk fills up in between
        bench.delete(sandboxes[0])
        with pytest.raises(DiskFull):
            await waiting
        bench.disk.full = False


async def test_the_state_of_the_node_is_told_with_its_numbers() -> None:
    bench = Bench()
    await bench.join()
    await bench.schedule("waits")
    async with bench.controller(), bench.running() as agent:
        await bench.add("sandbox")
        await bench.settle()
        state = agent.addresses.state()
        assert (state.synced, state.in_contact) == (True, True)
        assert (state.counts[State.ASSIGNED], state.counts[State.AVAILABLE]) == (1, 14)
        assert (state.primaries, state.requested, state.demand, state.waiting_pods) == (1, 15, 2, 1)
        assert (state.subnet, state.subnet_cidr) == ("pods", "10.0.0.0/16")
        assert (state.exhausted, state.starved, state.writes, state.alarms) == (False, False, 1, 0)
        assert len(list(agent.addresses.all_addresses())) == 15
