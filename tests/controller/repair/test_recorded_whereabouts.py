"""What the reconciler of the real Whereabouts 0.9.4 did, row by row, beside what leak repair does.

The recordings are in tests/recorded. Where podtide does otherwise on purpose, the row stands in the table below, with the
reason and the entry of docs/design that demands it.
"""

from ipaddress import ip_network
from typing import Any, TypeAlias

import pytest

from controller.repair.world import a_world
from differences import Difference
from podtide.resources.ip_pool import IPPool
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.names import normalise_range
from podtide.resources.pod import PodPhase
from recordings import whereabouts

Row: TypeAlias = dict[str, Any]

ROWS: list[Row] = whereabouts("reconciler")

HAS_ENDED = Difference(
    why="a pod that has ended needs no address, whatever it still shows: a Job's would be held until somebody deletes it",
    number="T24",
    words="a pod that has ended needs no address",
)
IS_ALIVE = Difference(
    why="a pod that runs is alive, whatever it shows: its ADD may be under way, or nobody writes such a status",
    number="T23",
    words="a Pending or Running pod is alive, whatever it shows",
)

FREED_HERE = {
    "pod Succeeded, annotation still there -> kept": (["10.0.0.1"], HAS_ENDED),
    "pod Failed, annotation still there -> kept": (["10.0.0.1"], HAS_ENDED),
    "pod Running without network-status -> removed": ([], IS_ALIVE),
}


def title(row: Row) -> str:
    return str(row["scenario"]["name"])


@pytest.mark.parametrize("row", ROWS, ids=title)
async def test_the_reconciler(row: Row) -> None:
    scenario = row["scenario"]
    async with a_world() as world:
        for pod in scenario["pods"]:
            shown = None if pod["no_network_status"] else pod["secondary_ips"]
            await world.pod(pod["ref"], phase=PodPhase(pod["phase"]), shown=shown)
        for cidr, held in scenario["pools"].items():
            # As far as the recording tells, nothing is guarded: where it is, the reservations are there.
            await world.attachment(range=cidr, enable_overlapping_ranges=bool(scenario["orip"]))
            await world.pool(normalise_range(cidr), cidr, held)
        for name, pod in (scenario["orip"] or {}).items():
            await world.reservation(name, pod)
        await world.look_twice()

        freed = []
        for cidr, held in scenario["pools"].items():
            left = await world.cluster.get(IPPool, normalise_range(cidr), SYSTEM_NAMESPACE)
            freed += [str(ip_network(cidr)[int(key)]) for key in held if key not in left.spec.allocations]
        assert freed == (FREED_HERE[title(row)][0] if title(row) in FREED_HERE else row["freed"])
        assert sorted(await world.reserved()) == row["orip_left"]


@pytest.mark.parametrize("name", FREED_HERE)
def test_a_difference_is_about_a_recorded_row_and_demanded_by_an_entry_that_is_there(name: str) -> None:
    assert name in map(title, ROWS)
    FREED_HERE[name][1].require_quoted()
