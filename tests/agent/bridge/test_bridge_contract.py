"""The port `Bridge`: its promises, kept by a bridge of this machine and by the one in memory."""

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from agent.bridge.memory_bridge import MemoryBridge
from left_out import leave_out
from namespaces.namespace import Namespace, lacking, made
from patience import PATIENCE_SECONDS
from podtide.agent.bridge.netlink_bridge import NetlinkBridge
from podtide.agent.bridge.port import Bridge, BridgeError
from podtide.core.pool.bridge_gateways import BridgeAddress

pytestmark = pytest.mark.real_time

NAME = "podtide0"


class Fixture(Struct, frozen=True):
    """A bridge, and the hands of somebody else who changes it."""

    bridge: Bridge
    delete: Callable[[], object]
    add_by_another: Callable[[str], object]
    remove_by_another: Callable[[str], object]
    inside: Callable[[Callable[[], None]], None]
    """Calls a function where the bridge is."""


@contextmanager
def netlink_bridge() -> Iterator[tuple[NetlinkBridge, Namespace]]:
    """A bridge in a namespace of its own: sockets belong to the namespace that they were opened in."""
    if os.geteuid() or lacking():
        leave_out("network namespaces", "that takes root and iproute2")
    with made("bridge") as [namespace]:
        bridge = namespace.inside(lambda: NetlinkBridge(NAME, mtu=1400))
        try:
            yield bridge, namespace
        finally:
            bridge.close()


@pytest.fixture(params=["memory", "netlink"])
def fixture(request: pytest.FixtureRequest) -> Iterator[Fixture]:
    if request.param == "memory":
        memory = MemoryBridge()
        yield Fixture(
            memory, memory.delete, memory.add_by_another, memory.remove_by_another, lambda call: call()
        )
        return
    with netlink_bridge() as (bridge, namespace):
        yield Fixture(
            bridge,
            lambda: namespace.ip("link", "delete", NAME),
            lambda address: namespace.ip("address", "add", address, "dev", NAME),
            lambda address: namespace.ip("address", "delete", address, "dev", NAME),
            namespace.inside,
        )


def gateways(bridge: Bridge) -> set[BridgeAddress]:
    """Without those that a kernel makes by itself."""
    return {each for each in bridge.ensure() if not each.address.startswith("fe80:")}


def test_a_bridge_is_created_once_and_keeps_what_is_put_on_it(fixture: Fixture) -> None:
    assert gateways(fixture.bridge) == set()
    for address in ("10.1.0.1/24", "10.9.0.1/28", "fd01::1/64", "10.1.0.1/24"):
        fixture.bridge.add(address)
    assert gateways(fixture.bridge) == {
        BridgeAddress(address, is_ours=True) for address in ("10.1.0.1/24", "10.9.0.1/28", "fd01::1/64")
    }


def test_what_is_taken_off_is_gone_and_what_is_not_there_is_no_error(fixture: Fixture) -> None:
    fixture.bridge.ensure()
    fixture.bridge.add("10.1.0.1/24")
    fixture.bridge.add("10.9.0.1/28")
    for _ in range(2):
        fixture.bridge.remove("10.1.0.1/24")
    assert gateways(fixture.bridge) == {BridgeAddress("10.9.0.1/28", is_ours=True)}


def test_what_another_program_put_there_is_told_apart(fixture: Fixture) -> None:
    fixture.bridge.ensure()
    fixture.add_by_another("192.168.9.1/24")
    fixture.bridge.add("10.1.0.1/24")
    assert gateways(fixture.bridge) == {
        BridgeAddress("192.168.9.1/24", is_ours=False),
        BridgeAddress("10.1.0.1/24", is_ours=True),
    }


def test_a_bridge_that_was_deleted_is_created_anew_without_addresses(fixture: Fixture) -> None:
    fixture.bridge.ensure()
    fixture.bridge.add("10.1.0.1/24")
    fixture.delete()
    fixture.bridge.add("10.9.0.1/28")  # there is nothing to put it on
    assert gateways(fixture.bridge) == set()
    fixture.bridge.add("10.1.0.1/24")
    assert gateways(fixture.bridge) == {BridgeAddress("10.1.0.1/24", is_ours=True)}


def test_who_watches_is_told_what_somebody_deletes(fixture: Fixture) -> None:
    async def watch() -> None:
        fixture.bridge.ensure()
        told = asyncio.Event()
        with fixture.bridge.watch(told.set):
            for delete in (partial(fixture.remove_by_another, "10.1.0.1/24"), fixture.delete):
                fixture.bridge.ensure()
                fixture.bridge.add("10.1.0.1/24")
                for _ in range(
                    3
                ):  # the kernel has told of that already, and the loop hears of it in its next rounds
                    await asyncio.sleep(0)
                told.clear()
                delete()
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await told.wait()
        told.clear()
        fixture.bridge.ensure()
        assert not told.is_set(), "and no longer than it watches"

    fixture.inside(lambda: asyncio.run(watch()))


# What only a kernel has


def shown(namespace: Namespace) -> dict[str, Any]:
    [link] = json.loads(namespace.ip("-details", "-json", "link", "show", NAME))
    found: dict[str, Any] = link
    return found


def test_a_new_bridge_is_up_with_the_mtu_that_was_asked_for() -> None:
    with netlink_bridge() as (bridge, namespace):
        bridge.ensure()
        link = shown(namespace)
        assert (link["linkinfo"]["info_kind"], link["mtu"]) == ("bridge", 1400)
        namespace.ip("link", "set", NAME, "down")
        bridge.ensure()
        assert "UP" in shown(namespace)["flags"]


def test_who_watches_is_told_of_a_bridge_that_is_set_down() -> None:
    with netlink_bridge() as (bridge, namespace):
        bridge.ensure()
        # Without IPv6 a bridge keeps its addresses when it goes down: nothing but the link tells of it.
        disable_ipv6(namespace)

        async def watch() -> None:
            told = asyncio.Event()
            with bridge.watch(told.set):
                namespace.ip("link", "set", NAME, "down")
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await told.wait()

        namespace.inside(lambda: asyncio.run(watch()))


@pytest.mark.parametrize("maker", ["podtide", "another program", "another program, with a port on it"])
def test_its_mac_address_does_not_follow_its_ports(maker: str) -> None:
    with netlink_bridge() as (bridge, namespace):
        if maker != "podtide":
            namespace.ip("link", "add", NAME, "type", "bridge")
        if maker.endswith("port on it"):
            plug(namespace, "port1", "02:00:00:00:00:02")
        bridge.ensure()
        bridge.add("10.1.0.1/24")
        before = shown(namespace)
        assert before["linkinfo"]["info_data"]["bridge_id"] != "8000.0:0:0:0:0:0"
        plug(namespace, "port0", "02:00:00:00:00:01")
        assert shown(namespace)["address"] == before["address"] != "02:00:00:00:00:01"


def disable_ipv6(namespace: Namespace) -> None:
    namespace.inside(lambda: Path(f"/proc/sys/net/ipv6/conf/{NAME}/disable_ipv6").write_text("1"))


def plug(namespace: Namespace, name: str, mac: str) -> None:
    namespace.ip("link", "add", name, "address", mac, "type", "veth", "peer", "name", f"{name}-peer")
    namespace.ip("link", "set", name, "master", NAME)


def test_an_ipv6_gateway_answers_at_once() -> None:
    """The kernel would check first whether somebody else has it, and cannot before there is a port."""
    with netlink_bridge() as (bridge, namespace):
        bridge.ensure()
        bridge.add("fd01::1/64")
        assert "tentative" not in namespace.ip("address", "show", "dev", NAME, "scope", "global")


def test_an_interface_of_another_kind_is_not_touched() -> None:
    with netlink_bridge() as (bridge, namespace):
        namespace.ip("link", "add", NAME, "type", "veth", "peer", "name", "peer")
        with pytest.raises(
            BridgeError, match="podtide0 is an interface of the kind veth, not a bridge: delete"
        ):
            bridge.ensure()
        namespace.ip("link", "delete", NAME)
        assert gateways(bridge) == set()


def test_what_the_kernel_refuses_is_said_with_what_to_do() -> None:
    with netlink_bridge() as (bridge, namespace):
        bridge.ensure()
        disable_ipv6(namespace)
        words = (
            r"fd01::1/64 cannot be put on the bridge podtide0 \(Permission denied\): the agent goes on trying"
        )
        with pytest.raises(BridgeError, match=words):
            bridge.add("fd01::1/64")
        assert gateways(bridge) == set(), "and the next call is answered as ever"


def test_a_bridge_is_deleted_for_good() -> None:
    with netlink_bridge() as (bridge, _):
        bridge.ensure()
        for _ in range(2):
            bridge.delete()
        assert bridge.ports() is None


def test_a_bridge_with_many_ports_is_read_whole() -> None:
    with netlink_bridge() as (bridge, namespace):
        assert bridge.ports() is None
        bridge.ensure()
        for number in range(60):
            plug(namespace, f"port{number}", f"02:00:00:00:01:{number:02x}")
        assert set(bridge.ports() or ()) == {f"port{number}" for number in range(60)}
