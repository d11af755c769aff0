"""What the controller of Whereabouts 0.9.4 did, through ours: one test for each recorded row of `node_slice_controller`.

The recordings are in tests/recorded. The lists of slices come out the same. What differs on purpose is in the table below,
with the reason and the entry of docs/design that demands it.
"""

from typing import Any

import pytest

from controller.slices.network_world import NetworkWorld, a_network_world, conf, ipam, moment
from differences import Difference
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node_slice_pool import NodeSlicePool
from recordings import whereabouts

ROWS: list[dict[str, Any]] = whereabouts("node_slice_controller")

Lists = dict[str, list[tuple[str, str]]]

DIFFERENCES = {
    "lists have no owners": Difference(
        why="a definition of another namespace cannot own one, and with the first the collector would take the list of all",
        number="T30",
        words="podtide's have no owners",
    ),
    "slice size larger than range": Difference(
        why="an Event says what is wrong, once, where Whereabouts fails and tries again for ever",
        number="T21",
        words="it is a configuration error, said once, in an Event",
    ),
    "TestTwoNetworksRangeAndSliceMismatch": Difference(
        why="an Event on each says so, once, where Whereabouts fails and tries again for ever",
        number="T29",
        words="Here each gets an Event, once, and what is in force stays.",
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
def test_a_difference_is_demanded_by_an_entry_that_is_there(name: str) -> None:
    DIFFERENCES[name].require_quoted()
