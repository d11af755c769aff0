"""What the reconciler of the real Whereabouts 0.9.4 did, row by row, beside what leak repair does.

The recordings lie beside the repository, in ../shared/cases; without them these tests are skipped. Where podtide does
otherwise on purpose, the row stands in the table below, with the reason.
"""

import json
from ipaddress import ip_network
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from controller.repair.world import a_world
from podtide.resources.ip_pool import IPPool
from podtide.resources.marks import SYSTEM_NAMESPACE
from podtide.resources.names import normalise_range
from podtide.resources.pod import PodPhase

Row: TypeAlias = dict[str, Any]

RECORDINGS = Path(__file__).parents[4] / "shared" / "cases" / "whereabouts.json"

if not RECORDINGS.exists():
    pytest.skip(
        "there are no recordings of Whereabouts in ../shared/cases beside this clone", allow_module_level=True
    )

ROWS: list[Row] = json.loads(RECORDINGS.read_text())["reconciler"]

FREED_HERE = {
    # A pod that has ended needs no address, whatever its annotation still shows: a Job's would be held until somebody
    # deletes the pod (WIRE.md §6, "The reconciler …": what it lists says nothing of who is alive; DESIGN.md, "Request":
    # Succeeded and Failed do not count).
    "pod Succeeded, annotation still there -> kept": ["10.0.0.1"],
    "pod Failed, annotation still there -> kept": ["10.0.0.1"],
    # A pod that runs and shows no network status is alive (WIRE.md §6, "The reconciler … frees live IPs"): its ADD may
    # be under way, or nobody writes such a status.
    "pod Running without network-status -> removed": [],
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
        assert freed == FREED_HERE.get(title(row), row["freed"])
        assert sorted(await world.reserved()) == row["orip_left"]


def test_every_difference_is_about_a_recorded_row() -> None:
    assert {title(row) for row in ROWS} >= FREED_HERE.keys()
