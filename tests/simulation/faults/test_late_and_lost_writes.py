"""Objects made once more minutes later, and disks that fail: the faults strike, and the programs stand them."""

from random import Random

import pytest
from msgspec import structs

from podtide.runtime.disk import DiskFailed
from podtide.runtime.memory_disk import DiskWeakness, MemoryDisk
from podtide.simulation.faults.disks import DiskFailure
from podtide.simulation.faults.line_fault import ALLOCATOR, CLUSTER, LineRequest
from podtide.simulation.faults.requests import LateCreate
from podtide.simulation.faults.scene import FaultScene
from podtide.simulation.faults.table import FAULTS
from podtide.simulation.run.fault_plan import PlannedMishap, fault_plan_for
from podtide.simulation.run.simulate import simulate


@pytest.mark.parametrize(
    "kind",
    ["NodeNetworkConfig", "IPPool", "NodeSlicePool", "OverlappingRangeIPReservation", "Lease", "Event"],
)
def test_whatever_is_made_may_be_made_once_more(kind: str) -> None:
    request = LineRequest(program="p", port=CLUSTER, verb="create", subject=f"{kind} x")
    assert LateCreate().concerns(request)
    assert not LateCreate().concerns(structs.replace(request, verb="replace"))
    assert not LateCreate().concerns(structs.replace(request, port=ALLOCATOR))


@pytest.mark.slow
def test_a_run_in_which_much_is_made_once_more_comes_to_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LateCreate, "rate", 0.5)
    faults = frozenset({LateCreate.name, "definition-recreated", "node-recreated", "machine-replaced"})
    plan = fault_plan_for(5, nodes=3, faults=faults, trouble_seconds=120.0, networks=1)
    report = simulate(plan)
    assert report.failure == ""
    assert report.faults[LateCreate.name] > 20


def a_plan_of_failures() -> tuple[PlannedMishap, ...]:
    return tuple(PlannedMishap(10.0 + 10.0 * number, DiskFailure.name, number) for number in range(8))


def test_agents_end_when_their_disk_fails_and_come_back_with_what_they_knew() -> None:
    plan = fault_plan_for(4, nodes=3, faults=frozenset({"pod-evicted"}), trouble_seconds=120.0)
    report = simulate(structs.replace(plan, mishaps=a_plan_of_failures()))
    assert report.failure == ""
    assert report.faults[DiskFailure.name] > 1


@pytest.mark.slow
def test_an_agent_that_goes_on_after_its_disk_failed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgiving(DiskFailure):
        async def happen(self, scene: FaultScene, chance: Random) -> str:
            for machine in scene.world.machines.values():
                if machine.agent is not None:
                    monkeypatch.setattr(machine.agent._journaled, "failed", _NeverSet())
            return await super().happen(scene, chance)

    monkeypatch.setitem(FAULTS, DiskFailure.name, Forgiving())
    plans = (
        fault_plan_for(seed, nodes=3, faults=frozenset({"pod-evicted"}), trouble_seconds=120.0)
        for seed in range(8)
    )
    reports = (simulate(structs.replace(plan, mishaps=a_plan_of_failures())) for plan in plans)
    assert any("after its disk failed" in report.failure for report in reports)


class _NeverSet:
    def set(self) -> None:
        """Tell nobody."""


def test_what_a_disk_in_memory_could_not_sync_is_read_until_the_power_goes() -> None:
    disk = MemoryDisk()
    log = disk.open_log("journal", 0)
    log.append(b"safe")
    log.sync()
    log.append(b"lost")
    disk.fail_at(DiskWeakness.SYNC)
    with pytest.raises(DiskFailed):
        log.sync()
    assert disk.read("journal") == b"safelost"
    again = disk.open_log("journal", 8)
    again.append(b"more")
    again.sync()
    disk.crash(Random(1))
    assert disk.read("journal") == b"safe\0\0\0\0more"
