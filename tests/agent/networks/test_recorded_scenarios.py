"""What the real Whereabouts answered to ADDs and DELs, asked of this agent, call by call.

The recordings are in tests/recorded. Where podtide answers otherwise on purpose, the scenario is in the table below, with
the reason and the entry of docs/design that demands it.
"""

import json
from typing import Any

import pytest

from agent.networks.network_bench import Bench
from agent.networks.node_calls import calling
from differences import Difference
from podtide.core.ranges import parse_network
from podtide.resources.base import ObjectMeta
from podtide.resources.codec import from_document
from podtide.resources.ip_pool import IPPool, IPPoolSpec
from podtide.resources.kinds import ALL_KINDS
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.names import Naming, SlicedRange
from recordings import whereabouts

SCENARIOS = whereabouts("cni_scenarios")

NOT_THE_GATEWAY = "v6 half /64"
WITHOUT_SLICE = "node slice: node without slice: ADD and DEL crash (exit 2, empty stdout)"
HIGH_OFFSETS = "v6 offset >= 2^64: key keeps only the low 64 bits; DEL leaves the reservation"
EXHAUSTED = "exhausted"
TOO_SMALL_A_SLICE = "node slice: /31 slice"

REFUSALS = {EXHAUSTED: 11, TOO_SMALL_A_SLICE: 7}
"""The code of what Whereabouts refuses too, always with 999."""

DIFFERENCES = {
    NOT_THE_GATEWAY: Difference(
        why="the gateway's address is the gateway's: the first one handed out is that behind it",
        number="T12",
        words="podtide withholds it",
    ),
    WITHOUT_SLICE: Difference(
        why="an ADD is told that there is no slice, with code 11, and a DEL, which has nothing to free, succeeds",
        number="T18",
        words="an ADD is told so with code 11, a DEL succeeds because there is nothing to free",
    ),
    HIGH_OFFSETS: Difference(
        why="keys are exact, so a DEL finds its entry, and takes its reservation along",
        number="T17",
        words="a DEL leaves the reservation. Here offsets are decimals of any size.",
    ),
    EXHAUSTED: Difference(
        why="a full range is over when a pod leaves", number="T25", words="a passing condition is code 11"
    ),
    TOO_SMALL_A_SLICE: Difference(
        why="a slice without an address to hand out is the configuration's fault, and stays one",
        number="T25",
        words="a configuration that must be changed is code 7",
    ),
}


def kind_of(name: str) -> Any:
    return next(kind for kind in ALL_KINDS if kind.api.kind == name)


async def seed(bench: Bench, document: dict[str, Any]) -> None:
    """What was there, and what our slices controller makes of it: a pool for each node that has a slice."""
    placed = document | {"metadata": document["metadata"] | {"namespace": SYSTEM_NAMESPACE}}
    kind = kind_of(document["kind"])
    placed["apiVersion"] = kind.api.api_version
    await bench.cluster.create(from_document(kind, placed), manager="whereabouts")
    if document["kind"] != "NodeSlicePool":
        return
    for entry in document["status"]["allocations"]:
        if entry["nodeName"]:
            names = SlicedRange(
                network_name="",
                configuration_name=document["metadata"]["name"],
                range=parse_network(document["spec"]["range"]),
            )
            slice_ = parse_network(entry["sliceRange"])
            pool = IPPool(
                metadata=ObjectMeta(
                    name=names.node_pool_name(entry["nodeName"], slice_, Naming.WHEREABOUTS),
                    namespace=SYSTEM_NAMESPACE,
                ),
                spec=IPPoolSpec(range=entry["sliceRange"], allocations={}),
            )
            await bench.cluster.create(pool, manager="podtide-controller")


def expected(scenario: str, step: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = step["result"]
    if scenario == NOT_THE_GATEWAY:
        result["ips"][0]["address"] = "2001:db8:5422:5::2/64"
    return result


async def call(bench: Bench, step: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Exit status and output, of an agent that has just started: nothing depends on what it remembers."""
    network = {"cniVersion": "0.3.1", "name": "mynet", "ipam": {"type": "whereabouts"} | step["ipam"]}
    async with calling(bench, step.get("node", "node-a")) as node:
        answer = await node.call(step["cmd"], json.dumps(network).encode(), step["id"], pod=step["pod"])
    return answer.exit_status, json.loads(answer.output or b"{}")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[each["name"] for each in SCENARIOS])
async def test_whereabouts_answers(scenario: dict[str, Any]) -> None:
    bench = Bench()
    for document in scenario["seed"]:
        await seed(bench, document)
    for recorded in scenario["steps"]:
        status, output = await call(bench, recorded["step"])
        if scenario["name"] == WITHOUT_SLICE:
            is_add = recorded["step"]["cmd"] == "ADD"
            assert (status, output.get("code")) == ((1, 11) if is_add else (0, None))
        elif recorded["rc"] == 0 and recorded["step"]["cmd"] == "ADD":
            assert output | {"dns": output.get("dns", {})} == expected(scenario["name"], recorded)
        elif recorded["rc"] == 0:
            assert status == 0
        else:
            assert output["code"] == REFUSALS[scenario["name"]]
    await require_final_state(bench, scenario)


async def require_final_state(bench: Bench, scenario: dict[str, Any]) -> None:
    """Who holds what in the end. Keys, pods and interfaces are the peer's; the pod's uid is ours to add."""
    pools, reserved = {}, dict(scenario["final_state"]["overlappingrangeipreservations"])
    for name, pool in scenario["final_state"]["ippools"].items():
        pools[name] = {
            key: (entry["id"], entry["podref"], entry["ifname"]) for key, entry in pool["allocations"].items()
        }
    if scenario["name"] == HIGH_OFFSETS:
        pools["fd00-1---48"] = {str(5 * 2**64 + 2): pools["fd00-1---48"]["2"]}
        del reserved["fd00-1-0-5--1"]
    if scenario["name"] == NOT_THE_GATEWAY:
        pools["2001-db8-5422-5---64"] = {"2": pools["2001-db8-5422-5---64"]["1"]}
        reserved = {"2001-db8-5422-5--2": reserved["2001-db8-5422-5--1"]}
    for name, entries in pools.items():
        found = await bench.pool(name)
        assert {key: (each.id, each.podref, each.ifname) for key, each in found.items()} == entries
    assert await bench.reserved() == {name: each["podref"] for name, each in reserved.items()}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_difference_is_about_a_recorded_scenario_and_demanded_by_an_entry_that_is_there(name: str) -> None:
    assert name in {each["name"] for each in SCENARIOS}
    DIFFERENCES[name].require_quoted()
