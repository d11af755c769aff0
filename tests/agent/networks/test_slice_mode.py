"""What a configuration promises holds in slice mode as in classic mode, through the plugin's calls.

Whereabouts leaves much of it out as soon as a range is cut into slices (design T13), so nothing is taken for granted
from the tests of classic mode.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent.calling import code
from agent.networks.network_bench import NODE, SLICED, Bench, configuration, ranges
from agent.networks.node_calls import MachineCalls, calling
from podtide.agent.api.plugin_protocol import Answer
from podtide.cluster.port import Unavailable

TRY_AGAIN = 11
UNKNOWN_CONTAINER = 3
SMALL = {"range": "10.0.0.0/16", "node_slice_size": "/29", "network_name": "blue"}
"""The node's slice is 10.0.3.8/29: six addresses, .9 to .14."""
SECOND = {"range": "10.1.0.0/16"}
IPV6 = {"range": "fd00:1::/48", "node_slice_size": "/64"}


@asynccontextmanager
async def cut(ipam: dict[str, Any], *slices: str) -> AsyncIterator[MachineCalls]:
    """A node that has a slice of each range."""
    bench = Bench()
    for place, slice_ in enumerate(slices):
        await bench.cut(ipam, slice_, place=place)
    async with calling(bench) as node:
        yield node


async def all_of(node: MachineCalls, ipam: dict[str, Any]) -> list[str]:
    """Every address that the node has to give, in the order in which it gives them."""
    given: list[str] = []
    while True:
        answer = await node.call("ADD", configuration(ipam), f"c{len(given)}")
        if answer.exit_status:
            assert code(answer) == TRY_AGAIN
            return given
        given += [each["address"].split("/")[0] for each in json.loads(answer.output)["ips"]]


# What is handed out


async def test_all_of_a_slice_is_handed_out_but_its_first_and_last_address() -> None:
    async with cut(SMALL, "10.0.3.8/29") as node:
        assert await all_of(node, SMALL) == [f"10.0.3.{last}" for last in range(9, 15)]


@pytest.mark.parametrize("gateway", ["10.0.3.9", "10.0.3.12", "10.0.3.14"])
async def test_the_gateway_is_handed_to_nobody_wherever_in_the_slice_it_is(gateway: str) -> None:
    ipam = SMALL | {"gateway": gateway}
    async with cut(ipam, "10.0.3.8/29") as node:
        given = await all_of(node, ipam)
        assert (len(given), gateway in given) == (5, False)
        assert gateway not in {name.removeprefix("blue-") for name in await node.bench.reserved()}


async def test_the_gateway_goes_along_and_a_slice_that_it_is_not_in_is_whole() -> None:
    ipam = SMALL | {"gateway": "10.0.0.1"}
    async with cut(ipam, "10.0.3.8/29") as node:
        assert (await node.add(ipam))["ips"] == [{"address": "10.0.3.9/16", "gateway": "10.0.0.1"}]
        await node.delete(ipam)
        assert len(await all_of(node, ipam)) == 6


async def test_excludes_hold_within_a_slice() -> None:
    ipam = SMALL | {"exclude": ["10.0.3.8/30", "10.0.3.13"]}
    async with cut(ipam, "10.0.3.8/29") as node:
        assert await all_of(node, ipam) == ["10.0.3.12", "10.0.3.14"]


async def test_excludes_may_leave_nothing_of_a_slice() -> None:
    ipam = SMALL | {"exclude": ["10.0.3.0/24"]}
    async with cut(ipam, "10.0.3.8/29") as node:
        assert await all_of(node, ipam) == []


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("10.0.3.10", "10.0.3.11", ["10.0.3.10", "10.0.3.11"]),
        ("10.0.0.5", "10.0.3.10", ["10.0.3.9", "10.0.3.10"]),
        ("10.0.3.13", "10.0.200.1", ["10.0.3.13", "10.0.3.14"]),
        ("10.0.9.1", "10.0.10.1", []),
    ],
    ids=["within the slice", "before it", "behind it", "elsewhere"],
)
async def test_start_and_end_hold_within_a_slice(start: str, end: str, expected: list[str]) -> None:
    ipam = SMALL | {"range_start": start, "range_end": end}
    async with cut(ipam, "10.0.3.8/29") as node:
        assert await all_of(node, ipam) == expected


async def test_a_range_that_names_its_two_ends_is_cut_too() -> None:
    ipam = SMALL | {"range": "10.0.3.10-10.0.3.12/16"}
    async with cut(ipam, "10.0.3.8/29") as node:
        assert await all_of(node, ipam) == [f"10.0.3.{last}" for last in range(10, 13)]


async def test_a_second_range_has_bounds_of_its_own() -> None:
    second = SECOND | {"range_start": "10.1.7.5", "range_end": "10.1.7.8", "exclude": ["10.1.7.6/31"]}
    ipam = SLICED | {"ipRanges": [second]}
    async with cut(ipam, "10.0.3.0/24", "10.1.7.0/24") as node:
        assert await node.addresses_of(ipam, "c1") == ["10.0.3.1/16", "10.1.7.5/16"]
        assert await node.addresses_of(ipam, "c2") == ["10.0.3.2/16", "10.1.7.8/16"]
        assert (await node.refused(ipam, sandbox="c3"))[0] == TRY_AGAIN
        pools = [each.node_pool_name(NODE, each.addresses.network) for each in ranges(ipam)]
        assert [len(await node.bench.pool(name)) for name in pools] == [2, 2], "the third keeps nothing"
        assert len(await node.bench.reserved()) == 4


async def test_a_second_range_may_be_classic_beside_a_sliced_one() -> None:
    ipam = {"ipRanges": [SMALL, SECOND], "network_name": "blue"}
    async with cut(ipam, "10.0.3.8/29") as node:
        assert await node.addresses_of(ipam) == ["10.0.3.9/16", "10.1.0.1/16"]
        assert set(await node.bench.pool("blue-10.1.0.0-16")) == {"1"}


async def test_dual_stack_gives_one_address_of_each_family_and_takes_both_back() -> None:
    ipam = SLICED | {"ipRanges": [IPV6]}
    async with cut(ipam, "10.0.3.0/24", "fd00:1:0:7::/64") as node:
        assert await node.addresses_of(ipam, "c1") == ["10.0.3.1/16", "fd00:1:0:7::1/48"]
        assert await node.addresses_of(ipam, "c2") == ["10.0.3.2/16", "fd00:1:0:7::2/48"]
        assert set(await node.bench.reserved()) == {
            *("blue-10.0.3.1", "blue-fd00-1-0-7--1", "blue-10.0.3.2", "blue-fd00-1-0-7--2")
        }
        await node.delete(ipam, "c1")
        assert await node.addresses_of(ipam, "c3") == ["10.0.3.1/16", "fd00:1:0:7::1/48"]


async def test_dual_stack_without_a_slice_of_one_family_gives_nothing_of_the_other() -> None:
    ipam = SLICED | {"ipRanges": [IPV6]}
    async with cut(ipam, "10.0.3.0/24") as node:
        assert (await node.refused(ipam))[0] == TRY_AGAIN
        assert await node.bench.pool("blue-node-a") == {}
        assert await node.bench.reserved() == {}


# What goes along


async def test_routes_and_dns_are_passed_on() -> None:
    routes = [{"dst": "10.9.0.0/16", "gw": "10.0.3.254"}]
    dns = {"nameservers": ["10.0.0.53"], "domain": "example.io", "search": ["a"], "options": ["ndots:1"]}
    ipam = SLICED | {"routes": routes, "dns": dns}
    async with cut(ipam, "10.0.3.0/24") as node:
        result = await node.add(ipam)
        assert (result["routes"], result["dns"]) == (routes, dns)


async def test_addresses_come_after_the_slices_own_and_are_written_nowhere() -> None:
    ipam = SLICED | {"addresses": [{"address": "192.0.2.9/28", "gateway": "192.0.2.1"}]}
    async with cut(ipam, "10.0.3.0/24") as node:
        assert (await node.add(ipam))["ips"] == [
            {"address": "10.0.3.1/16"},
            {"address": "192.0.2.9/28", "gateway": "192.0.2.1"},
        ]
        assert set(await node.bench.pool("blue-node-a")) == {"1"}
        assert set(await node.bench.reserved()) == {"blue-10.0.3.1"}


# CHECK and STATUS


async def test_check_confirms_what_add_answered_also_after_a_restart() -> None:
    ipam = SLICED | {"ipRanges": [IPV6]}
    async with cut(ipam, "10.0.3.0/24", "fd00:1:0:7::/64") as node:
        checked = configuration(ipam, prevResult=await node.add(ipam))
        node.line.forget()
        assert await node.call("CHECK", checked) == Answer(0)
        assert not node.line.calls, "it is the pool's only writer, and knows"
        bench = node.bench
    async with calling(bench) as node:
        assert await node.call("CHECK", checked) == Answer(0)


async def test_check_says_when_the_runtime_goes_by_another_address_or_by_none_of_a_range() -> None:
    ipam = SLICED | {"ipRanges": [IPV6]}
    async with cut(ipam, "10.0.3.0/24", "fd00:1:0:7::/64") as node:
        await node.add(ipam)
        partly = configuration(ipam, prevResult={"ips": [{"address": "10.0.3.1/16"}]})
        assert b"prevResult lacks fd00:1:0:7::1" in (await node.call("CHECK", partly)).output


async def test_check_of_what_is_not_in_the_slices_pool_is_an_unknown_container() -> None:
    async with cut(SLICED, "10.0.3.0/24") as node:
        checked = configuration(SLICED, prevResult=await node.add(SLICED))
        unknown = await node.call("CHECK", checked, "c2")
        assert code(unknown) == UNKNOWN_CONTAINER
        assert "has no address of 10.0.0.0/16 on net1" in json.loads(unknown.output)["msg"]


async def test_check_of_a_node_without_a_slice_is_an_unknown_container() -> None:
    async with cut(SLICED) as node:
        checked = configuration(SLICED, prevResult={"ips": [{"address": "10.0.3.1/16"}]})
        assert code(await node.call("CHECK", checked)) == UNKNOWN_CONTAINER


async def test_status_fails_neither_for_want_of_a_slice_nor_for_a_full_one() -> None:
    async with cut(SMALL) as node:
        assert await node.call("STATUS", configuration(SMALL)) == Answer(0)
    async with cut(SMALL, "10.0.3.8/29") as node:
        await all_of(node, SMALL)
        assert await node.call("STATUS", configuration(SMALL)) == Answer(0)


async def test_status_fails_while_the_cluster_has_not_been_reached() -> None:
    bench = Bench()
    await bench.cut(SMALL, "10.0.3.8/29")
    async with calling(bench) as node:
        node.line.before["list Node"] = [Unavailable("no way there")] * 10_000
        assert code(await node.call("STATUS", configuration(SMALL))) == 50
