"""Addresses of a subnet with several CIDRs: each is answered with its own, and those of one that drains go back."""

from collections.abc import Sequence

import pytest
from msgspec import structs

from agent.node_bench import NODE, Bench, container, owner
from podtide.agent.port import NotReady, PodAddress
from podtide.core.subnet.grants import primary_name
from podtide.resources.base import ObjectMeta
from podtide.resources.cluster_subnet import SubnetCidr
from podtide.resources.node import Node
from podtide.resources.node_network_config import CidrOfAddresses, IPAssignment, NetworkContainer

FIRST, LATER = "10.0.0.0/16", "10.9.0.0/24"


async def join(bench: Bench, *ips: str, cidrs: Sequence[CidrOfAddresses] = ()) -> str:
    """The node has these addresses; answers its container's id."""
    node = await bench.server.create(Node(metadata=ObjectMeta(name=NODE)), manager="test")
    id_ = node.metadata.uid
    held = [IPAssignment(name=f"{id_}-1-{number}", ip=ip) for number, ip in enumerate(ips)]
    await bench.make_config(
        node, structs.replace(container(id_, addresses=held), cidrs=list(cidrs), version=1)
    )
    return id_


def both(*, draining: str = "") -> list[SubnetCidr]:
    return [
        SubnetCidr(cidr=cidr, gateway=gateway, draining=cidr == draining)
        for cidr, gateway in ((FIRST, "10.0.0.1"), (LATER, "10.9.0.1"))
    ]


async def given(bench: Bench, sandbox: str, ip: str) -> PodAddress:
    answered = await bench.agent.addresses.add(owner(sandbox), arrived=bench.clock.monotonic(), wanted=(ip,))
    return answered[0]


async def test_an_address_is_answered_with_the_prefix_and_gateway_of_its_own_cidr() -> None:
    bench = Bench()
    await join(
        bench,
        "10.0.0.7",
        "10.9.0.7",
        cidrs=[
            CidrOfAddresses(cidr=FIRST, gateway="10.0.0.1"),
            CidrOfAddresses(cidr=LATER, gateway="10.9.0.1"),
        ],
    )
    await bench.make_subnet(batch=1)
    async with bench.running():
        first, later = await given(bench, "one", "10.0.0.7"), await given(bench, "other", "10.9.0.7")
        assert (first.subnet, first.gateway) == (FIRST, "10.0.0.1")
        assert (later.subnet, later.gateway) == (LATER, "10.9.0.1")
        assert later.primary == "10.0.255.254"


async def test_where_a_crd_drops_what_it_does_not_know_the_cluster_subnet_says_it_too() -> None:
    bench = Bench()
    await join(bench, "10.0.0.7", "10.9.0.7")
    await bench.make_subnet(batch=1, cidrs=both())
    async with bench.running():
        later = await given(bench, "one", "10.9.0.7")
        assert (later.subnet, later.gateway) == (LATER, "10.9.0.1")


async def test_an_address_is_not_answered_before_its_cidr_is_known() -> None:
    bench = Bench()
    await join(bench, "10.0.0.7", "10.9.0.7")
    await bench.make_subnet(batch=1, cidrs=both()[:1])
    async with bench.running() as agent:
        with pytest.raises(NotReady, match=r"the CIDR that 10\.9\.0\.7 is in is not known yet"):
            await given(bench, "one", "10.9.0.7")
        assert agent.addresses.check(owner("one"))[0].ip == "10.9.0.7", "it is the sandbox's, and stays so"
        await bench.set_subnet(batch=1, cidrs=both())
        await bench.settle()
        assert (await given(bench, "one", "10.9.0.7")).gateway == "10.9.0.1"


async def test_where_nobody_tells_cidrs_the_containers_own_is_told() -> None:
    bench = Bench()
    await join(bench, "10.9.0.7")
    await bench.make_subnet(batch=1, cidrs=[])
    async with bench.running():
        assert (await given(bench, "one", "10.9.0.7")).subnet == FIRST


async def test_what_no_pod_has_of_a_cidr_that_drains_is_named_for_release_at_once() -> None:
    bench = Bench()
    id_ = await join(bench, *(f"10.9.0.{last}" for last in range(2, 17)))
    await bench.make_subnet(cidrs=both())
    async with bench.running() as agent:
        assert (await given(bench, "one", "10.9.0.5")).ip == "10.9.0.5"
        await bench.settle()
        assert not (await bench.config()).spec.ips_not_in_use
        writes = len(bench.cluster.applied)
        await bench.set_subnet(cidrs=both(draining=LATER))
        await bench.settle()
        named = {f"{id_}-1-{number}" for number in range(15)} - {f"{id_}-1-3"}
        config = await bench.config()
        assert set(config.spec.ips_not_in_use) == named, "all but what a pod has"
        assert config.spec.requested_ip_count == 15, "and others are asked for in their stead"
        assert len(bench.cluster.applied) == writes + 1
        await bench.grant()
        await bench.settle()
        assert agent.addresses.check(owner("one"))[0].ip == "10.9.0.5"
        bench.delete("one")
        await bench.settle()
        assert set((await bench.config()).spec.ips_not_in_use) == {f"{id_}-1-3"}, (
            "the last one when its pod is gone"
        )
        await bench.grant()
        await bench.settle()
        assert not (await bench.config()).spec.ips_not_in_use


async def test_a_primary_in_a_cidr_that_drains_is_named_until_there_is_another() -> None:
    bench = Bench()
    id_ = await join(bench, *(f"10.9.0.{last}" for last in range(2, 17)))
    await bench.make_subnet(cidrs=both(draining=FIRST))
    async with bench.running():
        await bench.settle()
        assert (await bench.config()).spec.ips_not_in_use == [primary_name(id_)]
        [before] = (await bench.config()).status.network_containers
        moved: NetworkContainer = structs.replace(
            before, primary_ip="10.9.0.40", subnet_address_space=LATER, default_gateway="10.9.0.1", version=2
        )
        await bench.fill_in([moved])
        await bench.settle()
        assert not (await bench.config()).spec.ips_not_in_use


async def test_a_drain_that_is_cancelled_gives_up_nothing_more() -> None:
    bench = Bench()
    await join(bench, *(f"10.9.0.{last}" for last in range(2, 17)))
    await bench.make_subnet(cidrs=both(draining=FIRST))
    async with bench.running():
        await bench.settle()
        await bench.set_subnet(cidrs=both())
        await bench.settle()
        assert not (await bench.config()).spec.ips_not_in_use
