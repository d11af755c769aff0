"""A person asks the agent to free an address: it reads its pods afresh, and frees it as by a DEL."""

import asyncio

import pytest

from agent.node_bench import Bench, owner
from cluster.faulty_cluster import Script
from podtide.agent.pool.manual_release import ManualRelease, NotInPool
from podtide.agent.port import NotAssigned, Overtaken
from podtide.cluster.port import Unavailable
from podtide.core.errors import InvalidInput
from podtide.core.pool.manual_release import FreeingObjection

GRACE = 300.0


async def joined(faults: Script | None = None) -> Bench:
    bench = Bench(faults=faults)
    await bench.join()
    return bench


async def test_an_address_of_a_living_pod_is_kept_and_freed_only_by_force() -> None:
    bench = await joined()
    async with bench.controller(), bench.running() as agent:
        pod = await bench.schedule("web")
        [ip] = await bench.add("sandbox", pod)
        answer = await agent.manual_releases.release(ManualRelease(address=ip))
        assert (answer.released, answer.held_by) == (False, "pod default/web")
        assert answer.objections == (str(FreeingObjection.ALIVE),)
        assert await bench.add("sandbox", pod) == (ip,)
        forced = await agent.manual_releases.release(
            ManualRelease(address=ip, force=True, reason="switched off")
        )
        assert forced.released
        assert agent.addresses.state().demand == 1  # the pod needs one still
        with pytest.raises(NotAssigned):
            agent.addresses.check(owner("sandbox", pod))
        [line] = bench.log("address released by hand")
        assert (line["address"], line["reason"]) == (ip, "switched off")


async def test_a_sandbox_that_names_no_pod_is_what_force_is_for() -> None:
    """Nothing could prove it dead, so the agent itself never collects it."""
    bench = await joined()
    async with bench.controller(), bench.running() as agent:
        [ip] = await bench.add("nameless")
        await bench.settle(3 * GRACE)
        answer = await agent.manual_releases.release(ManualRelease(address=ip))
        assert answer.held_by == "sandbox nameless"
        assert answer.objections == (str(FreeingObjection.UNPROVEN),)
        assert (await agent.manual_releases.release(ManualRelease(address=ip, force=True))).released
        assert agent.addresses.state().demand == 0


async def test_a_pod_that_is_just_gone_may_still_be_stopping() -> None:
    bench = await joined()
    async with bench.controller(), bench.running() as agent:
        pod = await bench.schedule("web")
        [ip] = await bench.add("sandbox", pod)
        await bench.settle()
        await bench.remove(pod)
        await bench.settle(GRACE - 10)
        answer = await agent.manual_releases.release(ManualRelease(address=ip))
        assert answer.objections == (str(FreeingObjection.RECENT),)


async def test_a_dry_run_frees_nothing_even_by_force() -> None:
    bench = await joined()
    async with bench.controller(), bench.running() as agent:
        [ip] = await bench.add("nameless")
        asked = ManualRelease(address=ip, force=True, dry_run=True)
        assert not (await agent.manual_releases.release(asked)).released
        assert await bench.add("nameless") == (ip,)


async def test_without_the_api_server_only_force_frees() -> None:
    faults = Script()
    bench = await joined(faults)
    async with bench.controller(), bench.running() as agent:
        pod = await bench.schedule("web")
        [ip] = await bench.add("sandbox", pod)
        faults.steps["list"] = [Unavailable("away")] * 2
        answer = await agent.manual_releases.release(ManualRelease(address=ip))
        assert answer.objections == (str(FreeingObjection.UNREADABLE),)
        assert (await agent.manual_releases.release(ManualRelease(address=ip, force=True))).released


async def test_a_del_during_the_read_is_not_carried_out_a_second_time() -> None:
    """The next sandbox may have the address by then."""
    faults = Script()
    bench = await joined(faults)
    async with bench.controller(), bench.running() as agent:
        [ip] = await bench.add("nameless")
        faults.steps["list"] = [1.0]
        asking = asyncio.create_task(agent.manual_releases.release(ManualRelease(address=ip, force=True)))
        await asyncio.sleep(0.5)
        bench.delete("nameless")
        taken = await bench.add("next", wanted=(ip,))
        answer = await asking
        assert (answer.released, answer.words) == (False, "it was freed meanwhile")
        assert await bench.add("next") == taken == (ip,)


async def test_an_add_that_was_called_before_the_release_comes_too_late() -> None:
    bench = await joined()
    async with bench.controller(), bench.running() as agent:
        before = bench.clock.monotonic()
        [ip] = await bench.add("nameless")
        await asyncio.sleep(1)
        await agent.manual_releases.release(ManualRelease(address=ip, force=True))
        with pytest.raises(Overtaken):
            await agent.addresses.add(owner("nameless"), arrived=before)


async def test_what_no_sandbox_has_needs_no_release() -> None:
    bench = await joined()
    async with bench.controller(), bench.running() as agent:
        [ip] = await bench.add("sandbox")
        bench.delete("sandbox")
        answer = await agent.manual_releases.release(ManualRelease(address=ip, force=True))
        assert (answer.released, answer.held_by) == (False, "")
        assert answer.words.startswith("no sandbox has it: it is free in the node's pool")


@pytest.mark.parametrize(("address", "kind"), [("10.99.0.1", NotInPool), ("ten", InvalidInput)])
async def test_an_address_that_is_not_the_nodes_is_refused(address: str, kind: type[Exception]) -> None:
    bench = await joined()
    async with bench.controller(), bench.running() as agent:
        with pytest.raises(kind):
            await agent.manual_releases.release(ManualRelease(address=address))
