"""DELs of secondary networks that came while the agent was away: carried out when the cluster is there, before an ADD."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from agent.networks.network_bench import CLASSIC, Bench, configuration
from agent.networks.node_calls import NodeCalls
from agent.pool_addresses import PoolAddresses
from podtide.agent.api.deletion_notes import DeletionNotes, StuckNote
from podtide.agent.api.plugin_protocol import Answer
from podtide.cluster.port import Unavailable

POOL = "10.0.0.0-24"


def leave(directory: Path, stdin: bytes, sandbox: str = "c1") -> Path:
    """What the plugin does when nobody answers."""
    environment = {
        "CNI_COMMAND": "DEL",
        "CNI_CONTAINERID": sandbox,
        "CNI_IFNAME": "net1",
        "CNI_ARGS": "K8S_POD_NAMESPACE=default;K8S_POD_NAME=web",
    }
    variables = b"".join(f"{name}={value}\0".encode() for name, value in environment.items())
    note = directory / "deleted" / f"{sandbox}@net1"
    note.parent.mkdir(exist_ok=True)
    note.write_bytes(variables + b"\0" + stdin)
    return note


async def test_a_note_is_carried_out_as_soon_as_the_agent_looks(tmp_path: Path) -> None:
    bench = Bench()
    async with bench.machine() as machine:
        await machine.add("c1", CLASSIC)
    async with bench.machine() as machine:
        addresses = PoolAddresses(bench.clock)
        notes = DeletionNotes.beside(
            tmp_path / "agent.sock", addresses, machine.networks, log=bench.journal.log
        )
        note = leave(tmp_path, configuration(CLASSIC))
        notes.carry_out_all()
        assert note.exists(), "it has to wait for the cluster"
        looking = asyncio.create_task(notes.keep_carrying_out())
        await asyncio.sleep(1)
        assert not note.exists()
        assert await bench.pool(POOL) == {}
        assert await bench.reserved() == {}
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking


async def test_a_note_that_cannot_be_carried_out_stays(tmp_path: Path) -> None:
    bench = Bench()
    async with bench.machine() as machine:
        await machine.add("c1", CLASSIC)
        notes = DeletionNotes.beside(
            tmp_path / "agent.sock", PoolAddresses(bench.clock), machine.networks, log=bench.journal.log
        )
        note = leave(tmp_path, configuration(CLASSIC))
        machine.line.before["replace IPPool"] = [Unavailable("away")] * 10_000
        looking = asyncio.create_task(notes.keep_carrying_out())
        await asyncio.sleep(30)
        assert note.exists()
        complaints = [line for line in bench.journal.lines() if "notes of DELs" in line["event"]]
        assert len(complaints) == 1, "it is said once"
        machine.line.before.clear()
        await asyncio.sleep(30)
        assert not note.exists()
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking


async def test_an_add_first_carries_out_its_note_so_that_an_old_del_never_undoes_it(tmp_path: Path) -> None:
    bench = Bench()
    async with bench.machine() as machine:
        notes = DeletionNotes.beside(
            tmp_path / "agent.sock", PoolAddresses(bench.clock), machine.networks, log=bench.journal.log
        )
        node = NodeCalls(bench, machine.networks, notes)
        await node.add(CLASSIC)
        note = leave(tmp_path, configuration(CLASSIC))
        assert (await node.add(CLASSIC))["ips"] == [{"address": "10.0.0.1/24"}]
        assert not note.exists()
        assert not await notes.carry_out_anywhere("c1", "net1")
        assert set(await bench.pool(POOL)) == {"1"}


async def test_two_who_find_one_note_carry_it_out_once(tmp_path: Path) -> None:
    bench = Bench()
    async with bench.machine() as machine:
        notes = DeletionNotes.beside(
            tmp_path / "agent.sock", PoolAddresses(bench.clock), machine.networks, log=bench.journal.log
        )
        leave(tmp_path, configuration(CLASSIC))
        both = await asyncio.gather(*(notes.carry_out_anywhere("c1", "net1") for _ in range(2)))
        assert sorted(both) == [False, True]


async def test_an_add_of_the_nodes_pool_is_refused_while_a_networks_note_waits(tmp_path: Path) -> None:
    bench = Bench()
    async with bench.machine() as machine:
        notes = DeletionNotes.beside(
            tmp_path / "agent.sock", PoolAddresses(bench.clock), machine.networks, log=bench.journal.log
        )
        leave(tmp_path, configuration(CLASSIC))
        with pytest.raises(StuckNote, match="waits for the cluster"):
            notes.carry_out("c1", "net1")


@pytest.mark.parametrize("stdin", [b"", b"rubbish", configuration({"type": "podtide"})])
async def test_a_note_of_the_nodes_pool_needs_no_cluster_whatever_its_configuration(
    tmp_path: Path, stdin: bytes
) -> None:
    bench = Bench()
    async with bench.machine() as machine:
        notes = DeletionNotes.beside(
            tmp_path / "agent.sock", PoolAddresses(bench.clock), machine.networks, log=bench.journal.log
        )
        note = leave(tmp_path, stdin)
        notes.carry_out_all()
        assert not note.exists()
        note = leave(tmp_path, stdin)
        assert await notes.carry_out_anywhere("c1", "net1")
        assert not machine.line.calls


async def test_a_del_left_in_a_note_counts_as_one_that_came_before_the_add(tmp_path: Path) -> None:
    bench = Bench()
    async with bench.machine() as machine:
        notes = DeletionNotes.beside(
            tmp_path / "agent.sock", PoolAddresses(bench.clock), machine.networks, log=bench.journal.log
        )
        node = NodeCalls(bench, machine.networks, notes)
        leave(tmp_path, configuration(CLASSIC))
        machine.line.before["get IPPool"] = [0.5]
        assert (await node.call("ADD", configuration(CLASSIC))).exit_status == 0
        assert await node.call("DEL", configuration(CLASSIC)) == Answer(0)
