"""The agent of a node with a bridge: no pod is answered before its gateway is there, and what is deleted comes back."""

from contextlib import suppress

import pytest
from msgspec import structs

from agent.bridge.memory_bridge import MemoryBridge
from agent.node_bench import Bench, owner
from agent.test_cidrs import FIRST, LATER, both, given, join
from podtide.agent.port import NotReady
from podtide.resources.node_network_config import CidrOfAddresses, IPAssignment

GATEWAYS = {"10.0.0.1/16", "10.9.0.1/24"}
SHOWN = [
    CidrOfAddresses(cidr=FIRST, gateway="10.0.0.1"),
    CidrOfAddresses(cidr=LATER, gateway="10.9.0.1"),
]
LACKING = "the bridge lacks gateways; will go on trying"
NOT_FORWARDED = "the node does not forward packets"


@pytest.fixture
def bridge() -> MemoryBridge:
    return MemoryBridge()


@pytest.fixture
def bench(bridge: MemoryBridge) -> Bench:
    return Bench(bridge=bridge)


async def test_the_gateways_are_there_before_the_network_is_ready(bench: Bench, bridge: MemoryBridge) -> None:
    await join(bench, "10.0.0.7", "10.9.0.7", cidrs=SHOWN)
    await bench.make_subnet(batch=1)
    async with bench.running() as agent:
        await agent.network_ready.wait()
        assert bridge.present == GATEWAYS
        assert (await given(bench, "one", "10.9.0.7")).gateway == "10.9.0.1"


async def test_a_node_without_addresses_has_a_bridge_without_gateways(
    bench: Bench, bridge: MemoryBridge
) -> None:
    await join(bench)
    await bench.make_subnet(batch=1)
    async with bench.running() as agent:
        await agent.network_ready.wait()
        assert bridge.exists
        assert bridge.present == set()


async def test_an_add_that_waits_is_answered_after_the_gateway_of_its_cidr_is_there(
    bench: Bench, bridge: MemoryBridge
) -> None:
    await join(bench, cidrs=SHOWN)
    await bench.make_subnet(batch=1)
    async with bench.running() as agent:
        pending = agent.addresses.start_add(owner("one"), arrived=bench.clock.monotonic())
        assert not isinstance(pending, tuple)
        [empty] = (await bench.config()).status.network_containers
        granted = [IPAssignment(name="granted", ip="10.9.0.7")]
        await bench.fill_in([structs.replace(empty, ip_assignments=granted, version=2)])
        [answered] = await pending.wait()
        assert (answered.ip, answered.gateway) == ("10.9.0.7", "10.9.0.1")
        assert bridge.present == {"10.9.0.1/24"}


async def test_while_the_bridge_cannot_be_changed_nothing_is_ready_and_adds_are_told_why(
    bench: Bench, bridge: MemoryBridge
) -> None:
    await join(bench, "10.0.0.7", "10.9.0.7", cidrs=SHOWN)
    await bench.make_subnet(batch=1)
    bridge.refusal = "not permitted"
    async with bench.running() as agent:
        await bench.settle(60.0)
        assert not agent.network_ready.is_set()
        assert len(bench.log(LACKING)) == 1, "once"
        words = r"the gateway 10\.9\.0\.1/24 of 10\.9\.0\.7 is not on the bridge memory0 yet: not permitted; try again"
        with pytest.raises(NotReady, match=words):
            await given(bench, "one", "10.9.0.7")
        bridge.refusal = ""
        assert (await given(bench, "one", "10.9.0.7")).gateway == "10.9.0.1", "the next ADD looks itself"
        assert agent.network_ready.is_set()


async def test_a_bridge_that_is_gone_and_cannot_be_made_anew_keeps_adds_waiting(
    bench: Bench, bridge: MemoryBridge
) -> None:
    await join(bench, "10.0.0.7", cidrs=SHOWN[:1])
    await bench.make_subnet(batch=1)
    async with bench.running() as agent:
        await agent.network_ready.wait()
        bridge.refusal = "not permitted"
        bridge.delete()
        await bench.settle(0.01)
        with pytest.raises(NotReady, match="not permitted"):
            await given(bench, "one", "10.0.0.7")


async def test_the_bridge_is_tried_again_without_anybody_asking(bench: Bench, bridge: MemoryBridge) -> None:
    await join(bench, "10.0.0.7", cidrs=SHOWN[:1])
    await bench.make_subnet(batch=1)
    bridge.refusal = "not permitted"
    async with bench.running() as agent:
        await bench.settle(60.0)
        bridge.refusal = ""
        await bench.settle(35.0)
        assert agent.network_ready.is_set()


@pytest.mark.parametrize("how", ["an address", "the bridge"])
async def test_what_somebody_deletes_is_back_at_once(bench: Bench, bridge: MemoryBridge, how: str) -> None:
    await join(bench, "10.0.0.7", "10.9.0.7", cidrs=SHOWN)
    await bench.make_subnet(batch=1)
    async with bench.running() as agent:
        await agent.network_ready.wait()
        if how == "an address":
            bridge.remove_by_another("10.9.0.1/24")
        else:
            bridge.delete()
        await bench.settle(0.01)
        assert bridge.present == GATEWAYS


async def test_a_gateway_goes_with_the_last_address_of_its_cidr_and_not_with_its_last_grant(
    bench: Bench, bridge: MemoryBridge
) -> None:
    await join(bench, "10.0.0.7", "10.9.0.7", cidrs=SHOWN)
    await bench.make_subnet(batch=1)
    async with bench.running():
        await given(bench, "one", "10.9.0.7")
        bridge.add_by_another("192.168.9.1/24")
        [held] = (await bench.config()).status.network_containers
        rest = [each for each in held.ip_assignments if each.ip == "10.0.0.7"]
        await bench.fill_in([structs.replace(held, ip_assignments=rest, cidrs=[], version=2)])
        await bench.settle(60.0)
        assert bridge.present == {*GATEWAYS, "192.168.9.1/24"}, "a pod has an address of it still"
        bench.delete("one")
        await bench.settle(31.0)
        assert bridge.present == {"10.0.0.1/16", "192.168.9.1/24"}


async def test_an_agent_takes_nothing_off_before_it_knows_what_the_node_has(
    bench: Bench, bridge: MemoryBridge
) -> None:
    """Its journal may be lost, and pods use the gateways that the agent before it put there."""
    bridge.ensure()
    bridge.add("10.9.0.1/24")
    async with bench.running(sync=False):
        await bench.settle(60.0)
        assert bridge.present == {"10.9.0.1/24"}
        await join(bench, "10.0.0.7", cidrs=SHOWN[:1])
        await bench.make_subnet(batch=1)
        await bench.settle(60.0)
        assert bridge.present == {"10.0.0.1/16"}


async def test_a_gateway_that_is_there_already_is_left_as_it_is(bench: Bench, bridge: MemoryBridge) -> None:
    bridge.ensure()
    bridge.add_by_another("10.0.0.1/16")
    await join(bench, "10.0.0.7", "10.9.0.7", cidrs=SHOWN)
    await bench.make_subnet(batch=1)
    async with bench.running() as agent:
        await agent.network_ready.wait()
        assert bridge.log == ["+10.9.0.1/24"]


async def test_a_cidr_that_only_the_cluster_subnet_states_has_its_gateway_too(
    bench: Bench, bridge: MemoryBridge
) -> None:
    await join(bench, "10.0.0.7", "10.9.0.7")
    await bench.make_subnet(batch=1, cidrs=both()[:1])
    async with bench.running() as agent:
        await agent.network_ready.wait()
        assert bridge.present == {"10.0.0.1/16"}
        with suppress(NotReady):
            await given(bench, "one", "10.9.0.7")
        await bench.set_subnet(batch=1, cidrs=both())
        await bench.settle()
        assert bridge.present == GATEWAYS
        assert (await given(bench, "one", "10.9.0.7")).gateway == "10.9.0.1"


async def test_where_no_gateway_is_stated_pods_are_told_the_one_that_the_bridge_has(
    bench: Bench, bridge: MemoryBridge
) -> None:
    await join(bench, "10.0.0.7")
    [stated] = (await bench.config()).status.network_containers
    await bench.fill_in([structs.replace(stated, default_gateway="")])
    await bench.make_subnet(batch=1, cidrs=[])
    async with bench.running():
        assert (await given(bench, "one", "10.0.0.7")).gateway == "10.0.0.1"
        assert bridge.present == {"10.0.0.1/16"}


async def test_a_node_that_does_not_forward_is_told_of_once_and_again_after_it_did(
    bench: Bench, bridge: MemoryBridge
) -> None:
    await join(bench, "10.0.0.7", cidrs=SHOWN[:1])
    await bench.make_subnet(batch=1)
    bridge.forwards = False
    async with bench.running() as agent:
        await bench.settle(100.0)
        (line,) = bench.log(NOT_FORWARDED)
        assert "set net.ipv4.ip_forward=1 on the node" in line["reason"]
        assert agent.network_ready.is_set(), "pods of one CIDR reach each other all the same"
        bridge.forwards = True
        await bench.settle(31.0)
        bridge.forwards = False
        await bench.settle(31.0)
        assert len(bench.log(NOT_FORWARDED)) == 2
