"""Mishaps strike in every cluster of a subnet, and a machine that is replaced is run as the one before it."""

from random import Random

import pytest
from msgspec import structs

from podtide.resources.lease import Lease
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import FaultScene
from podtide.simulation.faults.table import FAULTS
from podtide.simulation.nodes.other_agents import POLICIES
from podtide.simulation.run.fault_plan import FaultPlan, PlannedMishap, fault_plan_for
from podtide.simulation.run.simulate import simulate
from podtide.simulation.trace import ClusterWrite


class Look(Mishap):
    """Nothing goes wrong: somebody looks."""

    name = "look"
    every_seconds = 60.0

    def __init__(self) -> None:
        self.struck: set[str] = set()
        self.machines: list[list[tuple[str, object]]] = []
        self.began: dict[str, float] = {}

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        del chance
        self.struck.add(scene.world.name)
        machines = scene.world.site.machines
        self.machines.append([(name, machine.policy) for name, machine in machines.items()])
        for entry in scene.world.trace.entries:
            if isinstance(entry, ClusterWrite) and entry.kind == Lease.api.kind:
                self.began.setdefault(entry.cluster, entry.at)
        return "somebody"


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Look:
    looking = Look()
    monkeypatch.setitem(FAULTS, Look.name, looking)
    return looking


def quiet_plan(*mishaps: PlannedMishap) -> FaultPlan:
    plan = fault_plan_for(3, nodes=4, faults=frozenset(), trouble_seconds=90.0)
    return structs.replace(plan, subnet="10.0.0.0/25", clusters=2, agents=(), mishaps=mishaps)


def test_mishaps_strike_in_both_of_two_clusters_whose_nodes_have_the_same_names(look: Look) -> None:
    looks = (PlannedMishap(10.0 + number, Look.name, number) for number in range(10))
    assert simulate(quiet_plan(*looks)).failure == ""
    assert look.struck == {"east", "west"}
    names = [name for name, _policy in look.machines[0]]
    assert names == ["east/node-0", "west/node-0", "east/node-1", "west/node-1"]


def test_controllers_of_two_clusters_look_out_of_step(look: Look) -> None:
    assert simulate(quiet_plan(PlannedMishap(80.0, Look.name, 0))).failure == ""
    assert set(look.began) == {"east", "west"}
    assert 0.01 < look.began["west"] - look.began["east"] < 5.0


def test_a_machine_that_is_replaced_has_an_agent_of_the_same_kind(look: Look) -> None:
    replaced = (PlannedMishap(10.0 + number, "machine-replaced", number) for number in range(4))
    plan = quiet_plan(*replaced, PlannedMishap(89.0, Look.name, 0))
    report = simulate(structs.replace(plan, clusters=1, agents=("cns-v2",) * 4))
    assert report.failure == ""
    assert report.faults["machine-replaced"] > 1
    assert {policy for _name, policy in look.machines[-1]} == {POLICIES["cns-v2"]}
