"""A cluster restored from a backup: an agent never hands out what its own record says a sandbox has, and puts it back."""

import asyncio
import json
from random import Random
from typing import Any

import pytest

from agent.networks.network_bench import CLASSIC, NODE, SLICED, Bench, Machine, NetworkLine, owner
from podtide import __version__
from podtide.agent.networks.address_record import DAMAGED_JOURNAL, JOURNAL
from podtide.agent.networks.errors import StorageFailed
from podtide.agent.networks.secondary_networks import SecondaryNetworks
from podtide.agent.pool.file_format import NewerFormat
from podtide.agent.pool.journal import encode_record, read_records
from podtide.agent.port import NoAddress
from podtide.cluster.port import Unavailable
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPAllocation, IPPool
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.pod import Pod, PodSpec
from podtide.runtime.disk import DiskFailed, DiskFull
from podtide.runtime.memory_disk import DiskWeakness, MemoryDisk
from podtide.runtime.runtime import Runtime

CLASSIC_POOL, SLICE_POOL = "10.0.0.0-24", "blue-10-0-0-0-16-node-a"
MODES = pytest.mark.parametrize("ipam", [CLASSIC, SLICED], ids=["shared", "sliced"])


async def begin(bench: Bench, ipam: dict[str, Any]) -> str:
    """The node's slice is cut where there are slices; answers the pool's name once it is there."""
    if ipam is SLICED:
        return (await bench.cut(SLICED, "10.0.0.0/24")).metadata.name
    return CLASSIC_POOL


async def holders(bench: Bench, pool: str) -> dict[str, str]:
    """The sandboxes in a pool, by the last part of their address."""
    return {key: entry.id for key, entry in (await bench.pool(pool)).items()}


@MODES
async def test_what_was_given_since_the_backup_is_put_back_and_given_to_nobody(ipam: dict[str, Any]) -> None:
    bench = Bench()
    pool = await begin(bench, ipam)
    async with bench.machine() as node:
        await node.add("c1", ipam)
        await asyncio.sleep(40)
        backup = bench.cluster.snapshot()
        had = [*await node.add("c2", ipam), *await node.add("c3", ipam)]
        bench.cluster.restore(backup)
        await asyncio.sleep(60)  # nobody calls
        assert await holders(bench, pool) == {"1": "c1", "2": "c2", "3": "c3"}
        assert len(await bench.reserved()) == 3
        assert await node.add("c4", ipam) != had
        assert await node.add("c2", ipam) == had[:1]
        assert await node.delete("c2", ipam) == ["10.0.0.2"]
        assert await holders(bench, pool) == {"1": "c1", "3": "c3", "4": "c4"}
        assert "10.0.0.2" not in " ".join(await bench.reserved())


@MODES
async def test_an_add_at_the_very_moment_of_the_restore_gets_another_address(ipam: dict[str, Any]) -> None:
    bench = Bench()
    pool = await begin(bench, ipam)
    async with bench.machine() as node:
        await node.add("c1", ipam)
        backup = bench.cluster.snapshot()
        await node.add("c2", ipam)
        node.line.watches_break = True  # nothing but the pool itself tells of it
        bench.cluster.restore(backup)
        # Nothing is answered while it is not certain that what was reserved is there; and of a shared pool other nodes
        # may have something to put back, too.
        with pytest.raises(NoAddress, match="put back" if ipam is CLASSIC else "may have gone back"):
            await node.add("c3", ipam)
        node.line.watches_break = False
        await asyncio.sleep(40)
        assert await node.add("c3", ipam) == [f"10.0.0.3/{24 if ipam is CLASSIC else 16}"]
        assert await holders(bench, pool) == {"1": "c1", "2": "c2", "3": "c3"}


@MODES
async def test_the_record_outlives_the_agent(ipam: dict[str, Any]) -> None:
    bench, disk = Bench(), MemoryDisk()
    pool = await begin(bench, ipam)
    async with bench.machine(disk=disk) as node:
        await node.add("c1", ipam)
        backup = bench.cluster.snapshot()
        await node.add("c2", ipam)
        await node.add("c3", ipam)
        await node.delete("c3", ipam)
        node.networks.close()
    bench.cluster.restore(backup)
    async with bench.machine(disk=disk) as node:
        await asyncio.sleep(60)  # nobody calls
        assert await holders(bench, pool) == {"1": "c1", "2": "c2"}
        assert len(await bench.reserved()) == 2
        assert node.networks.knows(owner("c2"))
        assert await node.add("c4", ipam) == ["10.0.0.3/24" if ipam is CLASSIC else "10.0.0.3/16"]


async def test_a_pool_made_since_the_backup_is_made_again_with_what_sandboxes_have() -> None:
    bench = Bench()
    await bench.join()
    backup = bench.cluster.snapshot()
    async with bench.machine() as node:
        await node.add("c1", CLASSIC)
        bench.cluster.restore(backup)
        await asyncio.sleep(60)
        assert await holders(bench, CLASSIC_POOL) == {"1": "c1"}
        assert await bench.reserved() == {"10.0.0.1": "default/pod-of-c1"}


async def test_a_slice_that_is_gone_leaves_its_addresses_reserved_until_it_is_cut_again() -> None:
    bench = Bench()
    await bench.join()
    backup = bench.cluster.snapshot()
    pool = await begin(bench, SLICED)
    async with bench.machine() as node:
        await node.add("c1", SLICED)
        bench.cluster.restore(backup)
        await asyncio.sleep(60)
        assert await bench.reserved() == {"blue-10.0.0.1": "default/pod-of-c1"}
        await bench.cut(SLICED, "10.0.0.0/24")
        await asyncio.sleep(60)
        assert await holders(bench, pool) == {"1": "c1"}


async def test_a_slice_that_became_another_is_an_alarm() -> None:
    bench = Bench()
    await bench.join()
    backup = bench.cluster.snapshot()
    await begin(bench, SLICED)
    async with bench.machine() as node:
        await node.add("c1", SLICED)
        bench.cluster.restore(backup)
        pool = await bench.cut(SLICED, "10.0.7.0/24")
        await asyncio.sleep(120)
        alarms = [line for line in bench.journal.lines() if line["level"] == "error"]
        assert [alarm["address"] for alarm in alarms] == ["10.0.0.1"]
        assert "10.0.7.0/24" in alarms[0]["reason"]
        assert await holders(bench, pool.metadata.name) == {}
        assert await node.delete("c1", SLICED) == []
        assert await bench.reserved() == {}


@MODES
async def test_what_was_given_up_since_the_backup_is_not_given_to_its_pod_again(ipam: dict[str, Any]) -> None:
    """Its pod is back with the backup, but the address is another's by now."""
    bench = Bench()
    pool = await begin(bench, ipam)
    async with bench.machine() as node:
        await node.add("c1", ipam)
        backup = bench.cluster.snapshot()
        await node.delete("c1", ipam)
        (had,) = await node.add("c2", ipam)
        await asyncio.sleep(40)
        bench.cluster.restore(backup)
        await asyncio.sleep(40)
        assert await node.add(owner("c3", "pod-of-c1"), ipam) != [had]
        assert await holders(bench, pool) == {"1": "c2", "2": "c3"}


async def test_of_two_nodes_that_share_a_pool_the_one_whose_sandbox_has_it_keeps_it() -> None:
    bench = Bench()
    async with bench.machine("node-a") as one, bench.machine("node-b") as other:
        await one.add("c1", CLASSIC)
        backup = bench.cluster.snapshot()
        await one.delete("c1", CLASSIC)
        (had,) = await other.add("c2", CLASSIC)
        await asyncio.sleep(40)
        bench.cluster.restore(backup)
        back = owner("c3", "pod-of-c1")
        with pytest.raises(NoAddress, match="put back"):
            await one.add(back, CLASSIC)
        await asyncio.sleep(40)
        assert await one.add(back, CLASSIC) != [had]
        await asyncio.sleep(400)
        assert await holders(bench, CLASSIC_POOL) == {"1": "c2", "2": "c3"}
        assert (await bench.reserved())["10.0.0.1"] == "default/pod-of-c2"


async def test_what_nobody_claims_of_what_came_back_is_struck_off() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", CLASSIC)
        backup = bench.cluster.snapshot()
        await node.delete("c1", CLASSIC)
        bench.cluster.restore(backup)
        await asyncio.sleep(40)
        assert await node.add(owner("c3", "pod-of-c1"), CLASSIC) == ["10.0.0.2/24"]
        assert await holders(bench, CLASSIC_POOL) == {"1": "c1", "2": "c3"}
        await asyncio.sleep(400)
        assert await holders(bench, CLASSIC_POOL) == {"2": "c3"}


@MODES
async def test_nothing_is_answered_that_was_reserved_before_the_watch_broke(ipam: dict[str, Any]) -> None:
    """A restore between reservation and pool takes the reservation away, and only the watch tells at once."""
    bench = Bench()
    await begin(bench, ipam)
    async with bench.machine() as node:
        await node.add("c1", ipam)
        await asyncio.sleep(60)
        backup = bench.cluster.snapshot()
        node.line.before["replace IPPool"] = [2.0]
        adding = asyncio.create_task(node.add("c2", ipam))
        await asyncio.sleep(1)
        node.line.watches_break = True
        bench.cluster.restore(backup)
        await asyncio.sleep(3)
        assert not adding.done()
        node.line.watches_break = False
        (given,) = await adding
        assert given.partition("/")[0] in " ".join(await bench.reserved())


@MODES
async def test_two_sandboxes_of_one_pod_get_one_address_while_there_are_ghosts(ipam: dict[str, Any]) -> None:
    bench = Bench()
    pool = await begin(bench, ipam)
    async with bench.machine() as node:
        await node.add("c1", ipam)
        backup = bench.cluster.snapshot()
        await node.add("c2", ipam)
        bench.cluster.restore(backup)
        await asyncio.sleep(40)
        (first,), (second,) = await asyncio.gather(
            node.add(owner("c3", "web"), ipam), node.add(owner("c4", "web"), ipam)
        )
        assert first == second
        assert sorted(await holders(bench, pool)) == ["1", "2", "3"]


async def test_an_address_whose_reservation_does_not_come_about_holds_up_no_other() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", CLASSIC)
        await asyncio.sleep(20)
        backup = bench.cluster.snapshot()
        for sandbox in ("c2", "c3", "c4"):
            await node.add(sandbox, CLASSIC)
        reserve = "create OverlappingRangeIPReservation"
        broken = Unavailable("the connection broke")
        node.line.before[reserve] = [
            broken,
            None,
            None,
            *[broken] * 3,
        ]  # c2's alone comes to nothing, four times
        bench.cluster.restore(backup)
        while len(node.line.before[reserve]) > 1:  # noqa: ASYNC110 - by the clock that jumps
            await asyncio.sleep(0.1)
        assert await holders(bench, CLASSIC_POOL) == {"1": "c1", "3": "c3", "4": "c4"}
        await asyncio.sleep(4)
        assert await holders(bench, CLASSIC_POOL) == {"1": "c1", "2": "c2", "3": "c3", "4": "c4"}
        assert len(await bench.reserved()) == 4


async def test_what_another_node_gave_after_the_restore_stays_theirs_once_the_del_has_come() -> None:
    """The node is out of contact for longer than others wait for it."""
    bench = Bench()
    async with bench.machine("node-a") as one, bench.machine("node-b") as other:
        await other.add("c0", CLASSIC)
        backup = bench.cluster.snapshot()
        await one.add("c1", CLASSIC)
        reads = [Unavailable("no connection") for _ in range(300)]
        one.line.watches_break, one.line.before["get IPPool"] = True, [*reads]
        one.line.before["list Node"] = [*reads]
        bench.cluster.restore(backup)
        with pytest.raises(StorageFailed):
            await one.delete("c1", CLASSIC)
        await asyncio.sleep(40)
        assert await other.add("c2", CLASSIC) == ["10.0.0.2/24"]
        one.line.watches_break = False
        one.line.before.clear()
        assert await one.delete("c1", CLASSIC) == []
        assert await holders(bench, CLASSIC_POOL) == {"1": "c0", "2": "c2"}
        assert (await bench.reserved())["10.0.0.2"] == "default/pod-of-c2"
        assert not [line for line in bench.journal.lines() if line["level"] == "error"]


async def test_what_another_node_gave_meanwhile_is_an_alarm_and_stays_theirs() -> None:
    bench = Bench()
    async with bench.machine() as node:
        await node.add("c1", CLASSIC)
        theirs = IPAllocation(id="w1", podref="default/w1", ifname="net1")
        await bench.edit(CLASSIC_POOL, lambda entries: entries.update({"1": theirs}))
        await node.add("c2", CLASSIC)
        alarms = [line for line in bench.journal.lines() if line["level"] == "error"]
        assert [(alarm["address"], alarm["reason"]) for alarm in alarms] == [
            ("10.0.0.1", "is held for default/w1 by the pool")
        ]
        assert await holders(bench, CLASSIC_POOL) == {"1": "w1", "2": "c2"}


async def test_what_was_struck_off_while_its_pod_lives_is_put_back() -> None:
    bench = Bench()
    place = ObjectMeta(name="web", namespace="default")
    pod = await bench.cluster.create(Pod(metadata=place, spec=PodSpec(node_name=NODE)), manager="test")
    async with bench.machine() as node:
        await node.add(owner("c1", "web", uid=pod.metadata.uid), CLASSIC)
        await bench.edit(CLASSIC_POOL, lambda entries: entries.clear())
        await node.add("c2", CLASSIC)
        assert await holders(bench, CLASSIC_POOL) == {"1": "c1", "2": "c2"}


async def test_what_is_put_back_is_reserved_anew_however_lately_it_was_seen_to_be() -> None:
    """A pool that was written often enough since a restore is in no earlier version than it was: only the entries are gone."""
    bench = Bench()
    place = ObjectMeta(name="web", namespace="default")
    pod = await bench.cluster.create(Pod(metadata=place, spec=PodSpec(node_name=NODE)), manager="test")
    async with bench.machine() as node:
        await node.add(owner("c1", "web", uid=pod.metadata.uid), CLASSIC)
        (name,) = await bench.reserved()
        await bench.cluster.delete(OverlappingRangeIPReservation, name, SYSTEM_NAMESPACE)
        await bench.edit(CLASSIC_POOL, lambda entries: entries.clear())
        await node.add("c2", CLASSIC)
        assert await holders(bench, CLASSIC_POOL) == {"1": "c1", "2": "c2"}
        assert (await bench.reserved())[name] == "default/web"


@MODES
async def test_an_address_reserved_before_a_restore_and_written_after_it_is_reserved_again(
    ipam: dict[str, Any],
) -> None:
    bench = Bench()
    pool = await begin(bench, ipam)
    async with bench.machine() as node:
        await node.add("c1", ipam)
        await asyncio.sleep(40)
        backup = bench.cluster.snapshot()

        node.line.before["replace IPPool"] = [2.0]
        adding = asyncio.create_task(node.add("c2", ipam))
        await asyncio.sleep(1)
        assert len(await bench.reserved()) == 2
        bench.cluster.restore(backup)
        await adding
        assert await holders(bench, pool) == {"1": "c1", "2": "c2"}
        assert len(await bench.reserved()) == 2


async def test_an_agent_that_is_restarted_just_after_a_restore_waits_for_the_others_too() -> None:
    bench, disk = Bench(), MemoryDisk()
    async with bench.machine(disk=disk) as node:
        await node.add("c1", CLASSIC)
        await asyncio.sleep(40)
        backup = bench.cluster.snapshot()
        await node.add("c2", CLASSIC)
        await asyncio.sleep(40)
        bench.cluster.restore(backup)
        await asyncio.sleep(5)
        assert await holders(bench, CLASSIC_POOL) == {"1": "c1", "2": "c2"}
        node.networks.close()
    async with bench.machine(disk=disk) as node:
        with pytest.raises(NoAddress, match="put back"):
            await asyncio.wait_for(node.add("c3", CLASSIC), 30)
        await asyncio.sleep(40)
        await node.add("c3", CLASSIC)
        assert await holders(bench, CLASSIC_POOL) == {"1": "c1", "2": "c2", "3": "c3"}


class _Reached(Random):
    """So many bytes of a file reached the disk by themselves."""

    def __init__(self, reached: int) -> None:
        super().__init__(0)
        self._reached = reached

    def randint(self, a: int, b: int) -> int:
        return min(b, max(a, self._reached))


async def test_what_was_given_up_before_a_power_loss_is_not_put_back_for_its_pods_earlier_sandbox() -> None:
    bench, disk = Bench(), MemoryDisk()
    place = ObjectMeta(name="web", namespace="default")
    pod = await bench.cluster.create(Pod(metadata=place, spec=PodSpec(node_name=NODE)), manager="test")
    async with bench.machine(disk=disk) as node:
        await node.add(owner("c1", "web", uid=pod.metadata.uid), CLASSIC)
        written = disk.read(JOURNAL)
        await node.delete("c1", CLASSIC)
        node.networks.close()
    assert written is not None
    disk.crash(_Reached(len(written)))
    async with bench.machine(disk=disk) as node:
        await asyncio.sleep(60)  # nobody calls: the pod waits
        assert await holders(bench, CLASSIC_POOL) == {}


async def test_that_a_pool_went_back_outlives_a_power_loss() -> None:
    """Else an entry that the backup brought back would be given to its pod, and the one it has stay held for ever."""
    bench, disk = Bench(), MemoryDisk()
    async with bench.machine(disk=disk) as node:
        await node.add("c1", CLASSIC)
        backup = bench.cluster.snapshot()
        await node.delete("c1", CLASSIC)
        bench.cluster.restore(backup)
        await asyncio.sleep(40)
        node.networks.close()
    disk.crash(_Reached(0))
    async with bench.machine(disk=disk) as node:
        assert await node.add(owner("c2", "pod-of-c1"), CLASSIC) == ["10.0.0.2/24"]
        await asyncio.sleep(400)
        assert await holders(bench, CLASSIC_POOL) == {"2": "c2"}


async def test_an_agent_whose_record_cannot_be_synced_ends() -> None:
    bench, disk = Bench(), MemoryDisk()
    await bench.join()
    networks = SecondaryNetworks(
        bench.cluster,
        NODE,
        disk=disk,
        runtime=Runtime(
            clock=bench.clock, randomness=Random(1), log=bench.journal.log, settings=bench.settings
        ),
    )
    running = asyncio.create_task(networks.run())
    node = Machine(networks, NetworkLine(bench.cluster), bench.clock)
    await node.add("c1", CLASSIC)
    await node.add("c2", CLASSIC)
    disk.fail_at(DiskWeakness.SYNC)
    with pytest.raises(DiskFailed):
        await node.delete("c1", CLASSIC)
    with pytest.raises(DiskFailed, match="input/output error"):
        await running
    # What could be read is not on the disk: the next agent writes it anew, and then the power may go.
    networks.close()
    disk.recover()
    async with bench.machine(disk=disk) as after:
        assert after.networks.knows(owner("c2"))
        after.networks.close()
    disk.crash(_Reached(0))
    async with bench.machine(disk=disk) as after:
        assert after.networks.knows(owner("c2"))


async def test_a_record_that_is_damaged_is_said_and_begun_anew() -> None:
    bench, disk = Bench(), MemoryDisk()
    async with bench.machine(disk=disk) as node:
        await node.add("c1", CLASSIC)
        node.networks.close()
    content = disk.read(JOURNAL)
    assert content is not None
    disk.replace(JOURNAL, content.replace(b"c1", b"c9"))
    async with bench.machine(disk=disk) as node:
        assert not node.networks.knows(owner("c1"))
        assert disk.read(DAMAGED_JOURNAL) is not None
        assert await node.add("c2", CLASSIC) == ["10.0.0.2/24"]


async def test_an_add_that_cannot_be_written_down_is_no_answer() -> None:
    class FullDisk(MemoryDisk):
        is_full = False

        def open_log(self, name: str, good_bytes: int) -> Any:
            log = super().open_log(name, good_bytes)
            append = log.append

            def refuse_if_full(content: bytes) -> None:
                if self.is_full:
                    raise DiskFull("no space left")
                append(content)

            log.append = refuse_if_full  # type: ignore[method-assign]
            return log

    bench, disk = Bench(), FullDisk()
    async with bench.machine(disk=disk) as node:
        await node.add("c1", CLASSIC)
        disk.is_full = True
        with pytest.raises(StorageFailed, match="no space left"):
            await node.add("c2", CLASSIC)
        disk.is_full = False
        assert await node.delete("c2", CLASSIC) == ["10.0.0.2"]


@pytest.mark.slow
async def test_the_record_stays_small_however_many_come_and_go() -> None:
    bench, disk = Bench(), MemoryDisk()
    async with bench.machine(disk=disk) as node:
        await node.add("stays", CLASSIC)
        for number in range(1_000):
            await node.add(f"c{number}", CLASSIC)
            await node.delete(f"c{number}", CLASSIC)
        node.networks.close()
    content = disk.read(JOURNAL)
    assert content is not None
    assert len(content) < 400_000
    async with bench.machine(disk=disk) as node:
        assert node.networks.knows(owner("stays"))
        assert not node.networks.knows(owner("c7"))
    assert (await bench.cluster.get(IPPool, CLASSIC_POOL, SYSTEM_NAMESPACE)).spec.allocations.keys() == {"1"}


async def test_a_record_of_a_newer_podtide_is_refused_and_stays_as_it_is() -> None:
    bench, disk = Bench(), MemoryDisk()
    content = encode_record(b'{"format":2,"podtide":"9.1.0","given":"otherwise"}')
    disk.replace(JOURNAL, content)
    with pytest.raises(NewerFormat, match=r"networks\.journal .* by podtide 9\.1\.0 in format 2"):
        async with bench.machine(disk=disk):
            pass
    assert disk.names() == [JOURNAL]
    assert disk.read(JOURNAL) == content


async def test_a_record_from_before_it_stated_its_format_is_read() -> None:
    bench, disk = Bench(), MemoryDisk()
    async with bench.machine(disk=disk) as node:
        await node.add("c1", CLASSIC)
        node.networks.close()
    content = disk.read(JOURNAL)
    assert content is not None
    first, *others = read_records(content).records
    stated = json.loads(first.payload)
    assert (stated.pop("format"), stated.pop("podtide")) == (1, __version__)
    lines = (
        encode_record(payload)
        for payload in (json.dumps(stated).encode(), *(each.payload for each in others))
    )
    disk.replace(JOURNAL, b"".join(lines))
    async with bench.machine(disk=disk) as node:
        assert node.networks.knows(owner("c1"))
