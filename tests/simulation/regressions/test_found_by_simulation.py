"""Plans that once failed, each in a file named by what it showed. Whatever else changes, they hold now.

What a plan does depends on the programs as well, so a plan that failed long ago may no longer come near what it once
showed: the mistake itself has a test of its own beside the part that made it.
"""

from pathlib import Path

import msgspec
import pytest

from podtide.simulation.run.fault_plan import FaultPlan
from podtide.simulation.run.simulate import simulate

PLANS = sorted((Path(__file__).parent / "plans").glob("*.json"))


@pytest.mark.slow
@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_it_holds_now(path: Path) -> None:
    assert simulate(msgspec.json.decode(path.read_bytes(), type=FaultPlan)).failure == ""
