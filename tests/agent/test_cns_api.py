"""The API of Azure CNS as its clients know it: spelling, codes, and the same addresses behind it."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.calling import SANDBOX, Journal, NoNotes
from agent.pool_addresses import PoolAddresses
from podtide.agent.api.cns_api import CnsApi, one, several
from podtide.cni.errors import Undecodable
from podtide.core.errors import StopError
from podtide.core.pool.pool import GrantedContainer, Owner
from podtide.core.pool.states import State
from podtide.runtime import virtual_time
from podtide.runtime.clock import LoopClock

POD = {"podName": "web-1", "podNamespace": "shop"}


def asking(**more: Any) -> dict[str, Any]:
    asked = {"infraContainerID": SANDBOX, "orchestratorContext": POD, "ifname": "eth0"} | more
    return {key: value for key, value in asked.items() if value is not None}


class Node:
    """The API on a pool with the given addresses."""

    def __init__(self, *ips: str) -> None:
        self.clock = LoopClock()
        self.addresses = PoolAddresses(self.clock)
        self.addresses.grant(*ips)
        self.journal = Journal()
        self.api = CnsApi(self.addresses, NoNotes(), clock=self.clock, log=self.journal.log)

    async def request(self, asked: Any = None, *, older: bool = False) -> dict[str, Any]:
        body = json.dumps(asking() if asked is None else asked).encode()
        answer = await self.api.request(body, one if older else several, arrived=self.clock.monotonic())
        document: dict[str, Any] = json.loads(answer.document)
        assert document["Response" if older else "response"]["ReturnCode"] == answer.code
        return document

    def release(self, asked: Any = None) -> dict[str, Any]:
        body = json.dumps(asking() if asked is None else asked).encode()
        document: dict[str, Any] = json.loads(self.api.release(body, arrived=self.clock.monotonic()).document)
        return document

    def show(self, *states: str) -> list[dict[str, Any]]:
        answer = self.api.show(json.dumps({"IPConfigStateFilter": states}).encode())
        document = json.loads(answer.document)
        assert document["Response"] == {"ReturnCode": 0, "Message": ""}
        addresses: list[dict[str, Any]] = document["IPConfigurationStatus"]
        return addresses


GIVEN = {
    "PodIPConfig": {"IPAddress": "10.1.0.5", "PrefixLength": 16},
    "NetworkContainerPrimaryIPConfig": {
        "IPSubnet": {"IPAddress": "10.1.0.4", "PrefixLength": 16},
        "DNSServers": [],
        "GatewayIPAddress": "10.1.0.1",
    },
    "HostPrimaryIPInfo": {"Gateway": "10.1.0.1", "PrimaryIP": "10.1.0.4", "Subnet": "10.1.0.0/16"},
    "NICType": "InfraNIC",
    "InterfaceName": "",
    "MacAddress": "",
    "SkipDefaultRoutes": False,
    "Routes": [],
    "NetworkContainerID": "nc-4",
}
SUCCESS = {"ReturnCode": 0, "Message": ""}


async def test_the_newer_request_answers_with_a_list() -> None:
    assert await Node("10.1.0.5").request() == {"podIPInfo": [GIVEN], "response": SUCCESS}


async def test_the_older_request_answers_with_one() -> None:
    assert await Node("10.1.0.5").request(older=True) == {"PodIpInfo": GIVEN, "Response": SUCCESS}


async def test_a_node_of_two_families_gives_one_address_of_each() -> None:
    infos = (await Node("10.1.0.5", "fd00::5").request())["podIPInfo"]
    assert [info["PodIPConfig"] for info in infos] == [
        {"IPAddress": "10.1.0.5", "PrefixLength": 16},
        {"IPAddress": "fd00::5", "PrefixLength": 64},
    ]


async def test_the_older_request_cannot_carry_two_addresses_and_takes_none() -> None:
    node = Node("10.1.0.5", "fd00::5")
    document = await node.request(older=True)
    assert document["Response"]["ReturnCode"] == 23
    assert document["PodIpInfo"]["PodIPConfig"] == {"IPAddress": "", "PrefixLength": 0}
    assert node.addresses.held() == {}


async def test_keys_are_matched_without_regard_to_case() -> None:
    asked = {
        "InfraContainerID": SANDBOX,
        "OrchestratorContext": {"PodName": "web-1", "PodNamespace": "shop"},
        "IfName": "eth7",
    }
    node = Node("10.1.0.5")
    assert (await node.request(asked))["response"] == SUCCESS
    assert node.addresses.held() == {(SANDBOX, "eth7"): ["10.1.0.5"]}


async def test_the_key_is_the_sandbox_and_its_interface() -> None:
    node = Node("10.1.0.5", "10.1.0.6", "10.1.0.7")
    await node.request()
    await node.request(asking(orchestratorContext={"podName": "renamed", "podNamespace": "shop"}))
    await node.request(asking(ifname="eth1"))
    await node.request(asking(infraContainerID="other"))
    assert sorted(node.addresses.held()) == [(SANDBOX, "eth0"), (SANDBOX, "eth1"), ("other", "eth0")]


async def test_without_an_interface_it_is_eth0() -> None:
    node = Node("10.1.0.5")
    await node.request(asking(ifname=None))
    assert set(node.addresses.held()) == {(SANDBOX, "eth0")}


async def test_the_pod_is_the_one_in_the_context() -> None:
    node = Node("10.1.0.5")
    await node.request()
    (address,) = node.addresses.all_addresses()
    assert address.owner == Owner(SANDBOX, "eth0", namespace="shop", name="web-1")


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize(
    "desired", [{"desiredIPAddresses": ["10.1.0.6"]}, {"DesiredIPAddress": "10.1.0.6"}], ids=repr
)
async def test_the_very_address_that_is_desired_is_given(older: bool, desired: dict[str, Any]) -> None:
    node = Node("10.1.0.5", "10.1.0.6")
    await node.request(asking(**desired), older=older)
    assert node.addresses.held() == {(SANDBOX, "eth0"): ["10.1.0.6"]}


async def test_a_desired_address_that_is_another_pods_is_not_given() -> None:
    node = Node("10.1.0.5", "10.1.0.6")
    await node.request(asking(infraContainerID="other", desiredIPAddresses=["10.1.0.6"]))
    document = await node.request(asking(desiredIPAddresses=["10.1.0.6"]))
    assert document["response"]["ReturnCode"] == 32


async def test_a_request_waits_for_the_address_on_its_way() -> None:
    node = Node()
    asked = asyncio.create_task(node.request())
    await asyncio.sleep(5)
    node.addresses.grant("10.1.0.5")
    assert (await asked)["response"] == SUCCESS


async def test_a_request_that_gets_none_in_time_failed_to_allocate() -> None:
    document = await Node().request()
    assert document == {
        "podIPInfo": [],
        "response": {"ReturnCode": 32, "Message": "no address became free: wait"},
    }


async def test_a_release_answers_in_the_plural_and_frees() -> None:
    node = Node("10.1.0.5")
    await node.request()
    assert node.release() == {"podIPInfo": [], "response": SUCCESS}
    assert node.addresses.held() == {}


async def test_a_release_of_the_unknown_is_a_success() -> None:
    assert Node("10.1.0.5").release()["response"] == SUCCESS


async def test_a_release_like_the_older_clients_send_it_is_taken() -> None:
    node = Node("10.1.0.5")
    await node.request()
    assert node.release(asking(desiredIPAddresses=[""], DesiredIPAddress=""))["response"] == SUCCESS


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (asking(orchestratorContext=None), 33),
        (asking() | {"orchestratorContext": None}, 33),
        (asking(orchestratorContext="web-1"), 34),
        (asking(orchestratorContext=[POD]), 34),
        (asking(orchestratorContext={}), 34),
        (asking(orchestratorContext={"podName": "web-1"}), 34),
        (asking(orchestratorContext={"podName": 7, "podNamespace": "shop"}), 34),
        (asking(infraContainerID=""), 23),
        (asking(infraContainerID="x" * 254), 23),
        (asking(ifname="x" * 254), 23),
        ({}, 33),
    ],
    ids=repr,
)
async def test_what_cannot_be_granted_is_refused_by_its_code(asked: dict[str, Any], code: int) -> None:
    node = Node("10.1.0.5")
    document = await node.request(asked)
    assert document["response"]["ReturnCode"] == code
    assert document["response"]["Message"]
    assert node.release(asked)["response"]["ReturnCode"] == code
    assert node.addresses.held() == {}


async def test_a_desired_address_that_is_none_is_refused() -> None:
    document = await Node("10.1.0.5").request(asking(desiredIPAddresses=["many"]))
    assert document["response"]["ReturnCode"] == 23


@pytest.mark.parametrize(
    ("error", "code"), [(StopError("broken: stop"), 29), (RuntimeError("one\ntwo"), 99), (OSError(), 99)]
)
async def test_what_nobody_foresaw_is_one_line(error: Exception, code: int) -> None:
    node = Node("10.1.0.5")
    node.addresses.broken = error
    response = (await node.request())["response"]
    assert response["ReturnCode"] == code
    assert "\n" not in response["Message"]
    assert node.release()["response"] == response
    assert "Traceback" in node.journal.lines()[-1]["exception"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b'{"infraContainerID": 7}', b"\xff"])
async def test_only_what_does_not_decode_is_an_error_of_http(body: bytes) -> None:
    node = Node()
    with pytest.raises(Undecodable):
        await node.api.request(body, several, arrived=0.0)
    with pytest.raises(Undecodable):
        node.api.release(body, arrived=0.0)


@given(
    st.dictionaries(
        st.sampled_from(["infraContainerID", "orchestratorContext", "ifname", "desiredIPAddresses", "x"]),
        st.recursive(
            st.none() | st.text(max_size=8) | st.integers() | st.just("web-1"),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(st.sampled_from(["podName", "podNamespace", "y"]), inner)
            ),
            max_leaves=5,
        ),
    )
)
def test_whatever_is_asked_is_answered_with_a_code_or_does_not_decode(asked: dict[str, Any]) -> None:
    async def ask() -> dict[str, Any]:
        return await Node("10.1.0.5").request(asked)

    try:
        document = virtual_time.run(ask())
    except Undecodable:
        return
    assert document["response"]["ReturnCode"] in {0, 23, 32, 33, 34}


async def test_a_request_leaves_a_line_like_an_add() -> None:
    node = Node("10.1.0.5")
    await node.request()
    node.release()
    added, deleted = node.journal.lines()
    assert (added["api"], added["verb"], added["pod"], added["addresses"]) == (
        "cns",
        "ADD",
        "web-1",
        ["10.1.0.5"],
    )
    assert (deleted["verb"], deleted["outcome"], deleted["sandbox"]) == ("DEL", "ok", SANDBOX)


async def test_the_pool_is_shown_with_who_has_what() -> None:
    node = Node("10.1.0.5", "10.1.0.6")
    await asyncio.sleep(60)
    await node.request()
    await asyncio.sleep(60)
    (assigned,) = node.show("Assigned")
    assert assigned == {
        "state": "Assigned",
        "ID": "name-of-10.1.0.5",
        "IPAddress": "10.1.0.5",
        "LastStateTransition": "2025-06-15T15:07:40Z",
        "NCID": "nc-4",
        "PodInfo": {
            "PodName": "web-1",
            "PodNamespace": "shop",
            "PodInfraContainerID": SANDBOX,
            "PodInterfaceID": f"{SANDBOX}-eth0",
            "Version": 1,
            "SecondaryInterfaceSet": False,
        },
    }
    (free,) = node.show("Available")
    assert (free["IPAddress"], free["PodInfo"]) == ("10.1.0.6", None)
    assert len(node.show("Available", "Assigned")) == 2
    assert node.show() == []
    assert node.show("PendingRelease", "unheard of") == []


async def test_states_of_our_own_are_shown_as_those_of_the_wire() -> None:
    node = Node()
    pool = node.addresses.pool
    pool.recover(GrantedContainer("nc", 1, 4, {"a": "10.1.0.5", "b": "10.1.0.6"}), (), 0.0)
    pool.adopt("10.1.0.6", Owner("s", "eth0"), 0.0)
    pool.apply(GrantedContainer("nc", 2, 4, {"a": "10.1.0.5"}), 0.0)
    assert {address.state for address in pool.addresses()} == {State.QUARANTINED, State.ORPHANED}
    assert [each["IPAddress"] for each in node.show("PendingProgramming")] == ["10.1.0.5"]
    assert [each["IPAddress"] for each in node.show("Assigned")] == ["10.1.0.6"]
    assert node.show("Quarantined", "Orphaned") == []
