"""What the real Whereabouts answered to ADDs and DELs, asked of this agent, call by call.

The recordings lie beside the repository, in ../shared/cases; without them these tests are skipped. Where podtide answers
otherwise on purpose, it is in one of the tables below, with the reason.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.networks.network_bench import Bench
from agent.networks.node_calls import calling
from podtide.core.ranges import parse_network
from podtide.resources.base import ObjectMeta
from podtide.resources.codec import from_document
from podtide.resources.ip_pool import IPPool, IPPoolSpec
from podtide.resources.kinds import ALL_KINDS
from podtide.resources.marks import SYSTEM_NAMESPACE
from podtide.resources.names import Naming, SlicedRange

RECORDED = Path(__file__).parents[4] / "shared" / "cases" / "whereabouts.json"

if not RECORDED.exists():
    pytest.skip(
        "there are no recordings of Whereabouts in ../shared/cases beside this clone", allow_module_level=True
    )

SCENARIOS = json.loads(RECORDED.read_text())["cni_scenarios"]

NOT_THE_GATEWAY = "v6 half /64"
"""WIRE.md §6: "The gateway address is handed out". Here the first address is the one behind it."""

WITHOUT_SLICE = "node slice: node without slice: ADD and DEL crash (exit 2, empty stdout)"
"""WIRE.md §6: "No free slice → nil-pointer crash, empty stdout". Here it is CNI error 11, and a DEL succeeds."""

HIGH_OFFSETS = "v6 offset >= 2^64: key keeps only the low 64 bits; DEL leaves the reservation"
"""WIRE.md §6: "IPv6 offsets ≥ 2^63 lose entries". Here keys are exact, and the DEL takes its reservation along."""

REFUSALS = {"exhausted": 11, "node slice: /31 slice": 7}
"""Whereabouts has one code, 999, for everything; here it is 7 where the configuration is to blame, else 11."""


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
