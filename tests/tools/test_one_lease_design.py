"""The model that benchmarks set beside slices: it asks the API server for what the real Whereabouts was recorded to ask.

The recordings are in tests/recorded.
"""

import asyncio
from typing import Any

import pytest

from busy_api_server import BusyApiServer, Call
from kubelet_deadline import KUBELET_SECONDS, Attached, Attachments, attach
from network_fleet import network_text
from one_lease_design import ADD_SECONDS, LEASE, OneLease
from podtide.cni.ipam_config import parse_config
from podtide.core.networks.allocations import Allocation
from podtide.networks.network import NetworkRange, network_of
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPPool
from podtide.resources.lease import Lease, LeaseSpec
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.runtime.clock import LoopClock
from podtide.runtime.randomness import seeded_randomness
from recordings import whereabouts

VERBS = {"POST": "create", "PUT": "replace", "PATCH": "replace"}
KINDS = {
    "leases": "Lease",
    "ippools": "IPPool",
    "overlappingrangeipreservations": "OverlappingRangeIPReservation",
}


def a_range(range_: str = "10.0.0.0/24") -> NetworkRange:
    network = network_of(parse_config(network_text("blue", range=range_)))
    assert network is not None
    return network.ranges[0]


def a_plugin(server: BusyApiServer, node: str = "node-a") -> OneLease:
    return OneLease(server.line("plugin"), LoopClock(), seeded_randomness(node))


def pod(name: str) -> Allocation:
    return Allocation(f"sandbox-of-{name}", f"default/{name}", "net1")


def call_of(request: dict[str, Any]) -> Call:
    """What was recorded, as the port has it."""
    _, *place = request["path"].partition(":")[2].split("/")
    verb = VERBS.get(request["verb"]) or ("get" if len(place) > 1 else "list")
    return Call("plugin", verb, KINDS[place[0]])


async def test_it_makes_the_calls_that_whereabouts_makes_in_that_order() -> None:
    steps = whereabouts("cni_scenarios")[0]["steps"]
    first, _deleted, second = (list(map(call_of, step["requests"])) for step in steps)
    server = BusyApiServer()
    for name, recorded in (("first", first), ("second", second)):
        server.traffic.clear()
        await a_plugin(server).add(a_range(), pod(name))
        assert server.traffic.calls == recorded
    server.cluster.close()


async def test_nodes_take_turns_at_one_lease_and_every_address_is_recorded_and_reserved() -> None:
    server, range_ = BusyApiServer(), a_range()
    nodes = [f"node-{number}" for number in range(8)]
    given = await asyncio.gather(*(a_plugin(server, node).add(range_, pod(node)) for node in nodes))
    assert len(set(given)) == len(nodes)
    pool = await server.cluster.get(IPPool, range_.classic_pool_name(), SYSTEM_NAMESPACE)
    recorded = {
        entry.podref: range_.addresses.address(int(key)) for key, entry in pool.spec.allocations.items()
    }
    assert recorded == {f"default/{node}": address for node, address in zip(nodes, given, strict=True)}
    reserved = (await server.cluster.list(OverlappingRangeIPReservation)).items
    assert {each.metadata.name for each in reserved} == {range_.reservation_name(each) for each in given}
    lease = await server.cluster.get(Lease, LEASE, SYSTEM_NAMESPACE)
    assert (lease.spec.holder_identity, lease.spec.lease_transitions) == ("", len(nodes))
    server.cluster.close()


async def test_an_add_whose_turn_never_comes_gives_up_by_itself() -> None:
    server, clock = BusyApiServer(), LoopClock()
    place = ObjectMeta(name=LEASE, namespace=SYSTEM_NAMESPACE)
    held = LeaseSpec(holder_identity="default/other", lease_duration_seconds=3600)
    await server.cluster.create(Lease(metadata=place, spec=held), manager="test")
    began = clock.monotonic()
    with pytest.raises(TimeoutError):
        await a_plugin(server).add(a_range(), pod("late"))
    assert clock.monotonic() - began == pytest.approx(ADD_SECONDS)
    server.cluster.close()


async def test_adds_that_the_kubelet_cut_off_or_that_never_began_count_with_its_deadline() -> None:
    pod_ = await attach(lambda _number: asyncio.sleep(100), 4, LoopClock())
    assert pod_ == Attached((100.0, 100.0), (KUBELET_SECONDS, KUBELET_SECONDS))
    pods = Attachments([pod_, Attached((1.0,) * 4, ())])
    assert (pods.ready, pods.given_up_by_kubelet, pods.answered, pods.unanswered) == (1, 1, 6, 2)
    assert [pods.add_seconds(part) for part in (0.0, 0.5, 0.99)] == [1.0, 100.0, KUBELET_SECONDS]


async def test_an_add_that_gave_up_by_itself_counts_with_its_own_deadline_and_ends_the_attempt() -> None:
    async def add(number: int) -> None:
        async with asyncio.timeout(30):
            await asyncio.sleep(10 if number == 0 else 60)

    pod_ = await attach(add, 3, LoopClock())
    assert pod_ == Attached((10.0,), (30.0, 30.0))
    assert Attachments([pod_]).given_up_by_kubelet == 0


async def test_a_large_answer_takes_the_server_longer() -> None:
    server, clock = BusyApiServer(), LoopClock()
    place = ObjectMeta(name="large", namespace=SYSTEM_NAMESPACE, annotations={"text": "x" * 3_300_000})
    await server.cluster.create(Lease(metadata=place, spec=LeaseSpec()), manager="test")
    began = clock.monotonic()
    await server.line("reader").get(Lease, "large", SYSTEM_NAMESPACE)
    assert clock.monotonic() - began == pytest.approx(0.11, rel=0.01)
    server.cluster.close()
