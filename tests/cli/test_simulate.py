"""`podtide simulate`: a run that fails is told with its seed, a smaller plan that fails too, and what led there."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec
import pytest
from click.testing import CliRunner, Result
from msgspec import structs

from podtide.cli.simulate import simulate
from podtide.core.pool.address import Address
from podtide.core.pool.pool import Pool
from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.scene import FaultScene
from podtide.simulation.faults.table import FAULTS
from podtide.simulation.run import simulate as simulation
from podtide.simulation.run.fault_plan import FaultPlan, PlannedMishap, fault_plan_for

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run_plan(plan: FaultPlan, *options: str) -> Result:
        file = tmp_path / "plan.json"
        file.write_bytes(msgspec.json.encode(plan))
        return CliRunner().invoke(simulate, ["--plan", str(file), *options])

    return run_plan


def quiet_plan(mishap: str = "") -> FaultPlan:
    """One node, and nothing goes wrong but the mishap, if there is one."""
    plan = fault_plan_for(3, nodes=1, faults=frozenset(), trouble_seconds=30.0)
    mishaps = (PlannedMishap(25.0, mishap, 0),) if mishap else ()
    return structs.replace(plan, controllers=1, mishaps=mishaps)


class Bewildered(Mishap):
    """The simulation itself has a mistake."""

    name = "bewildered"
    every_seconds = 60.0

    async def happen(self, scene: FaultScene, chance: Random) -> str:
        del chance
        return str(scene.world.machines[f"nowhere {object()}"])


@pytest.fixture
def _frees_under_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A DEL frees what the owner has that got its address last, whoever is named."""
    free = Pool.free

    def free_the_last(self: Pool, sandbox: str, interface: str, now: float) -> tuple[Address, ...]:
        del sandbox, interface
        [*_, last] = self.owners()
        return free(self, *last, now)

    monkeypatch.setattr(Pool, "free", free_the_last)


def part(output: str, title: str) -> list[str]:
    """The lines under a title, up to the next empty one."""
    lines = output.splitlines()
    below = lines[lines.index(title) + 1 :]
    return below[: below.index("")] if "" in below else below


STATES = "What happened to the address or slice in question:"
END = "How its trace ends:"


@pytest.mark.usefixtures("_frees_under_another_name")
def test_a_broken_program_is_told_with_its_seed_a_smaller_plan_the_states_of_the_address_and_the_trace(
    run: Run,
) -> None:
    plan = structs.replace(quiet_plan(), trouble_seconds=60.0)
    answer = run(plan)
    assert answer.exit_code == 1
    assert answer.stdout.startswith("seed 3: 1 nodes in ")
    assert "\nBROKEN: invariant " in answer.stdout
    smaller = msgspec.json.decode(part(answer.stdout, "Its plan, for --plan:")[0], type=FaultPlan)
    assert smaller.trouble_seconds < plan.trouble_seconds
    assert f" s: {simulation.simulate(smaller).failure}\n" in answer.stdout
    states = [
        line.rpartition(" is ")[2].split()[0] for line in part(answer.stdout, STATES) if "pool of" in line
    ]
    assert states[:2] == ["PendingProgramming", "Available"]
    assert len(states) > 2, "and what became of it"
    assert "the allocator has granted it" in answer.stdout
    assert 0 < len(part(answer.stdout, END)) <= 30
    assert not [line for line in part(answer.stdout, END) if " Lease " in line]


@pytest.mark.slow
def test_an_exception_that_nobody_foresaw_is_told_like_any_other_failure_and_always_in_the_same_words(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FAULTS, Bewildered.name, Bewildered())
    answer, again = (run(quiet_plan(Bewildered.name), "-o", "json") for _ in range(2))
    assert answer.exit_code == 1
    assert answer.stdout == again.stdout
    document = msgspec.json.decode(answer.stdout)
    for report in document["run"], document["shrunk"]:
        assert report["failure"].startswith("ended by KeyError in happen of test_simulate.py:")
        assert report["failure"].endswith(": 'nowhere <object object at 0x…>'")
    assert [each["fault"] for each in document["shrunk"]["plan"]["mishaps"]] == [Bewildered.name]
