"""A Node that is deleted and registered again while its machine lives on: no address of its pods goes to anybody else.

All programs are the production ones; nobody removes the pods.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import StringIO

import pytest

from podtide.core.pool.states import State
from podtide.resources.node import Node
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.simulation.world.embedded_world import NETWORK, SUBNET, open_embedded_world
from podtide.simulation.world.world import World

NODE = "node-0"
PODS = 9
QUARANTINE = 360.0


@asynccontextmanager
async def a_full_subnet(*others: str) -> AsyncIterator[World]:
    """A node with nine pods, and another that wants all that is left."""
    clock = LoopClock()
    log = make_logger(StringIO(), clock, level="error")
    async with open_embedded_world("10.0.0.0/27", *others, clock=clock, seed=1, log=log) as world:
        world.start_controller()
        await world.add_node(NODE)
        await world.workload.add_pods(NODE, PODS)
        await world.until(lambda: world.running_pods() == PODS, within=60)
        await world.add_node("node-1")
        await world.workload.add_pods("node-1", 30)
        await world.pass_time(120)
        yield world


async def register_again(world: World) -> None:
    machine = world.machines[NODE]
    await world.cluster.delete(Node, NODE, uid=machine.uid)
    machine.uid = ""
    await world.pass_time(5)
    machine.uid = (await world.create_node(NODE)).metadata.uid


def addresses(world: World, node: str) -> set[str]:
    return {ip for sandbox in world.machines[node].kubelet.sandboxes() for ip in sandbox.addresses}


@pytest.mark.parametrize(
    "others",
    [
        pytest.param((), id="one family", marks=pytest.mark.slow),
        pytest.param(("fd00::/112",), id="two families"),
    ],
)
@pytest.mark.parametrize("agent", ["lives", "restarts", "loses its journal"])
async def test_a_kubelet_that_registers_again_keeps_its_pods_addresses(
    agent: str, others: tuple[str, ...]
) -> None:
    async with a_full_subnet(*others) as world:
        had = addresses(world, NODE)
        if agent != "lives":
            await world.kill_agent(NODE)
        if agent == "loses its journal":
            world.lose_disk(NODE)
        await register_again(world)
        if agent != "lives":
            await world.start_agent(NODE)
        await world.pass_time(3 * QUARANTINE)
        machine = world.machines[NODE]
        assert machine.agent is not None
        states = {address.ip: address.state for address in machine.agent.addresses.all_addresses()}
        assert addresses(world, NODE) == had
        assert {states[ip] for ip in had} == {State.ASSIGNED}
        assert not addresses(world, "node-1") & had
        assert (await world.allocator.get_subnet(NETWORK, SUBNET)).quarantined == 0
        assert machine.agent.addresses.state().alarms == 0
        await world.auditor.check()


async def test_the_pods_of_a_machine_that_does_not_say_who_it_is_are_spared_too() -> None:
    """Nothing can be moved. The addresses wait for the pods to end, and the pods keep them."""
    async with a_full_subnet() as world:
        had = addresses(world, NODE)
        machine = world.machines[NODE]
        machine.identity = type(machine.identity)()
        await register_again(world)
        await world.pass_time(3 * QUARANTINE)
        assert addresses(world, NODE) == had
        assert not addresses(world, "node-1") & had
        for name in [pod.rpartition("/")[2] for pod in (box.pod for box in machine.kubelet.sandboxes())]:
            await world.workload.remove_pod(name)
        await world.pass_time(3 * QUARANTINE)
        assert (await world.allocator.get_subnet(NETWORK, SUBNET)).quarantined == 0
        await world.auditor.check()


async def test_a_machine_that_was_booted_meanwhile_holds_nobody_up() -> None:
    async with a_full_subnet() as world:
        machine = world.machines[NODE]
        await world.cluster.delete(Node, NODE, uid=machine.uid)
        machine.uid = ""
        await world.workload.clear_node(NODE)
        await world.crash_machine(NODE)
        await world.pass_time(5)
        waiting = (await world.allocator.get_subnet(NETWORK, SUBNET)).quarantined
        assert waiting > 0
        machine.uid = (await world.create_node(NODE)).metadata.uid
        await world.pass_time(5)
        assert (await world.allocator.get_subnet(NETWORK, SUBNET)).quarantined == 0
        await world.auditor.check()
