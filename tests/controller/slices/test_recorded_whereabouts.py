"""What the controller of Whereabouts 0.9.4 did, through ours: one test for each recorded row of `node_slice_controller`.

The recordings lie beside the repository, in ../shared/cases; without them these tests are skipped. The lists of slices
come out the same. What differs on purpose is in the table below, with the reason and the line that demands it.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from controller.slices.network_world import NetworkWorld, a_network_world, conf, ipam, moment
from differences import Difference
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node_slice_pool import NodeSlicePool

RECORDINGS = Path(__file__).parents[4] / "shared" / "cases" / "whereabouts.json"

if not RECORDINGS.exists():
    pytest.skip(
        "there are no recordings of Whereabouts in ../shared/cases beside this clone", allow_module_level=True
    )

ROWS: list[dict[str, Any]] = json.loads(RECORDINGS.read_text())["node_slice_controller"]

Lists = dict[str, list[tuple[str, str]]]

DIFFERENCES = {
    # Not among the traps of WIRE.md §6: there, what removes a list by the wrong name is the controller itself.
    "lists have no owners": Difference(
        why="a definition of another namespace cannot own one, and with the first the collector would take the list of all",
        document="DESIGN.md",
        section="Rules that keep races harmless",
        line="NADs in other namespaces are not owners: the controller collects.",
    ),
    "slice size larger than range": Difference(
        why="an Event says what is wrong, once, where Whereabouts fails and tries again for ever",
        line="A slice larger than its range loops in error: it is a config error, said once, clearly.",
    ),
    # Of two definitions that disagree §6 says nothing.
    "TestTwoNetworksRangeAndSliceMismatch": Difference(
        why="an Event on each says so, once, where Whereabouts fails and tries again for ever",
        document="DESIGN.md",
        section="Decisions (core)",
        line="two NADs of one network that disagree: a config error, said once, in Events and conditions.",
    ),
}


def slices(pool: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["nodeName"], each["sliceRange"]) for each in pool["allocations"]]


def expected(row: dict[str, Any]) -> Lists:
    """The lists that are there after what Whereabouts did."""
    lists = {pool["name"]: slices(pool) for pool in row["scenario"]["existing_pools"] or ()}
    for action in row["actions"]:
        if action["verb"] == "delete":
            del lists[action["name"]]
        else:
            lists[action["pool"]["name"]] = slices(action["pool"])
    return lists


async def set_up(world: NetworkWorld, scenario: dict[str, Any]) -> None:
    for each in scenario["nads"] or ():
        keys = ipam(
            range=each["range"], node_slice_size=each["node_slice_size"], network_name=each["network_name"]
        )
        await world.define(each["name"], conf(keys, each["conf_name"]))
    for each in scenario["existing_pools"] or ():
        await world.list_slices(each["name"], each["range"], each["sliceSize"], *slices(each))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["scenario"]["name"])
async def test_the_lists_of_slices_come_out_as_whereabouts_has_them(row: dict[str, Any]) -> None:
    scenario = row["scenario"]
    async with a_network_world(*(scenario["nodes"] or ())) as world:
        await set_up(world, scenario)
        replica = await world.start()
        found = (await world.cluster.list(NodeSlicePool)).items
        assert {pool.metadata.name: await world.entries(pool.metadata.name) for pool in found} == expected(
            row
        )
        assert not any(pool.metadata.owner_references for pool in found)
        for each in scenario["nads"] or ():
            said = await world.events(NetworkAttachmentDefinition, each["name"])
            assert len(said) == ("error" in row) == (scenario["name"] in DIFFERENCES)
        written = len(replica.cluster.writes)
        await moment(600)
        assert len(replica.cluster.writes) == written


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_difference_is_demanded_by_a_line_that_is_there(name: str) -> None:
    DIFFERENCES[name].require_quoted()
