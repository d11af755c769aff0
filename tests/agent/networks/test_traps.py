"""Traps of Whereabouts (design T11 to T18) that concern the agent, each avoided, through the plugin's calls."""

import asyncio
import json

import pytest

from agent.calling import code
from agent.networks.network_bench import CLASSIC, Bench, configuration, owner
from agent.networks.node_calls import calling
from podtide.cluster.port import Conflict, Forbidden, Unavailable
from podtide.resources.ip_pool import IPAllocation
from podtide.resources.lease import Lease

TRY_AGAIN = 11
POOL = "10.0.0.0-24"
SLICES = {"range": "10.0.0.0/16", "node_slice_size": "/24"}
SLICE_POOL = "10.0.0.0-16-node-a"


async def test_one_lease_for_every_add__there_is_none_in_classic_mode() -> None:
    async with calling() as node:
        await asyncio.gather(*(node.add(CLASSIC, f"c{number}") for number in range(20)))
        assert not [call for call in node.line.calls if "Lease" in call]
        assert (await node.bench.cluster.list(Lease)).items == []


async def test_ten_calls_per_add__there_are_two_and_the_write_is_shared() -> None:
    async with calling() as node:
        await node.add(CLASSIC, "c0")
        node.line.forget()
        await asyncio.gather(*(node.add(CLASSIC, f"c{number}") for number in range(1, 21)))
        assert node.line.calls == {"create OverlappingRangeIPReservation": 20, "replace IPPool": 1}


async def test_a_list_of_all_pools_per_add__nothing_but_the_node_itself_is_ever_listed() -> None:
    bench = Bench()
    await bench.cut(SLICES, "10.0.3.0/24")
    async with calling(bench) as node:
        for ipam in (CLASSIC, SLICES):
            await node.add(ipam, "c1")
            await node.delete(ipam, "c1")
        assert {call for call in node.line.calls if call.startswith("list")} == {"list Node"}


async def test_the_gateway_address_is_handed_out__it_is_not() -> None:
    bench = Bench()
    sliced = SLICES | {"gateway": "10.0.3.1"}
    await bench.cut(sliced, "10.0.3.0/24")
    async with calling(bench) as node:
        assert await node.addresses_of(CLASSIC | {"gateway": "10.0.0.1"}) == ["10.0.0.2/24"]
        assert await node.addresses_of(sliced, "c2") == ["10.0.3.2/16"]


async def test_start_end_and_exclude_are_ignored_with_slices__they_hold() -> None:
    bench = Bench()
    bounded = SLICES | {"range_start": "10.0.3.9", "range_end": "10.0.3.11", "exclude": ["10.0.3.10"]}
    await bench.cut(bounded, "10.0.3.0/24")
    async with calling(bench) as node:
        given = [await node.addresses_of(bounded, sandbox) for sandbox in ("c1", "c2")]
        assert given == [["10.0.3.9/16"], ["10.0.3.11/16"]]
        assert (await node.refused(bounded, sandbox="c3"))[0] == TRY_AGAIN


async def test_further_ranges_are_ignored_with_slices__each_gives_an_address() -> None:
    bench = Bench()
    two = SLICES | {"ipRanges": [{"range": "fd00:1::/48", "node_slice_size": "/64"}]}
    await bench.cut(two, "10.0.3.0/24")
    await bench.cut(two, "fd00:1:0:4::/64", place=1)
    async with calling(bench) as node:
        assert await node.addresses_of(two) == ["10.0.3.1/16", "fd00:1:0:4::1/48"]


@pytest.mark.parametrize(
    "fault",
    [Conflict("409"), Unavailable("500"), Forbidden("403")],
    ids=["409", "500", "403"],
)
async def test_a_patch_that_fails_still_answers_success__only_what_is_in_the_pool_is_answered(
    fault: Exception,
) -> None:
    async with calling() as node:
        node.line.before["replace IPPool"] = [fault] * 10_000
        refused, _ = await node.refused(CLASSIC)
        assert refused == TRY_AGAIN
        assert await node.bench.pool(POOL) == {}
        assert await node.bench.reserved() == {"10.0.0.1": "default/pod-of-c1"}, "a reservation goes ahead"
        node.line.before.clear()
        assert await node.addresses_of(CLASSIC, "c2") == ["10.0.0.2/24"], "and keeps the address from others"
        await node.delete(CLASSIC)
        assert await node.bench.reserved() == {"10.0.0.2": "default/pod-of-c2"}, "until the pod's DEL"
        assert [entry.id for entry in (await node.bench.pool(POOL)).values()] == ["c2"]


async def test_a_patch_that_fails_and_is_tried_again__pool_and_reservation_say_the_same() -> None:
    async with calling() as node:
        node.line.before["replace IPPool"] = [Conflict("409"), Unavailable("500")]
        assert await node.addresses_of(CLASSIC) == ["10.0.0.1/24"]
        assert {key: entry.podref for key, entry in (await node.bench.pool(POOL)).items()} == {
            "1": "default/pod-of-c1"
        }
        assert await node.bench.reserved() == {"10.0.0.1": "default/pod-of-c1"}


async def test_del_over_several_ranges_stops_at_the_first_miss__it_goes_on() -> None:
    ranges = {"ipRanges": [CLASSIC, {"range": "10.1.0.0/24"}, {"range": "10.2.0.0/24"}]}
    async with calling() as node:
        await node.add(ranges)
        await node.bench.edit(POOL, lambda entries: entries.clear())
        await node.delete(ranges)
        assert [await node.bench.pool(f"10.{number}.0.0-24") for number in range(3)] == [{}, {}, {}]
        assert await node.bench.reserved() == {}


@pytest.mark.parametrize("call", ["replace IPPool", "delete OverlappingRangeIPReservation"])
async def test_every_storage_error_on_del_is_swallowed__it_is_told_and_the_next_del_finishes(
    call: str,
) -> None:
    async with calling() as node:
        await node.add(CLASSIC)
        node.line.before[call] = [Unavailable("etcd is away")] * 10_000
        refused, words = await node.refused(CLASSIC, "DEL")
        assert (refused, "etcd is away" in words) == (TRY_AGAIN, True)
        node.line.before.clear()
        await node.delete(CLASSIC)
        assert await node.bench.pool(POOL) == {}
        assert await node.bench.reserved() == {}


async def test_a_pool_that_cannot_be_read_on_del_is_an_error_too() -> None:
    async with calling() as node:
        node.line.before["get IPPool"] = [Forbidden("no right to read")]
        refused, words = await node.refused(CLASSIC, "DEL")
        assert (refused, "no right to read" in words) == (TRY_AGAIN, True)


async def test_ipv6_offsets_from_two_to_the_63_on_lose_entries__they_are_exact() -> None:
    wide = {"range": "fd00:1::/48", "range_start": "fd00:1:0:0:8000::1"}
    async with calling() as node:
        assert await node.addresses_of(wide) == ["fd00:1::8000:0:0:1/48"]
        assert set(await node.bench.pool("fd00-1---48")) == {str(2**63 + 1)}
        await node.delete(wide)
        assert await node.bench.pool("fd00-1---48") == {}
        assert await node.bench.reserved() == {}


async def test_no_free_slice_is_a_crash_with_empty_output__it_is_an_error_that_says_so() -> None:
    bench = Bench()
    await bench.slices(
        "10.0.0.0-16", "10.0.0.0/16", "/24", **{f"other_{n}": f"10.0.{n}.0/24" for n in range(256)}
    )
    async with calling(bench) as node:
        answer = await node.call("ADD", configuration(SLICES))
        assert code(answer) == TRY_AGAIN
        assert "256 of 256 are assigned" in json.loads(answer.output)["msg"]
        await node.delete(SLICES)


async def test_a_pool_of_a_slice_that_was_another_nodes_is_kept_apart_by_more_than_a_reservation() -> None:
    """The pool says whose it is, and what is in it is respected."""
    bench = Bench()
    await bench.cut(SLICES, "10.0.3.0/24")
    left = IPAllocation(id="c0", podref="default/p0", ifname="net1")
    await bench.edit(SLICE_POOL, lambda entries: entries.update({"1": left}))
    async with calling(bench) as node:
        assert await node.addresses_of(SLICES) == ["10.0.3.2/16"]
        assert (await bench.pool(SLICE_POOL))["1"] == left


async def test_a_replaced_sandboxs_pod_keeps_its_address_by_uid_and_not_by_name_alone() -> None:
    async with calling() as node:
        await node.add(CLASSIC, "c1", pod="web")
        again = await node.add(CLASSIC, "c2", pod="web")
        assert again["ips"] == [{"address": "10.0.0.1/24"}]
        assert owner("c2", "web").pod == (await node.bench.pool(POOL))["1"].pod_uid
