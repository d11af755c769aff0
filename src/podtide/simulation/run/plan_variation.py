"""Plans like one that came near a rare state: most of it is kept, and one thing is another.

A plan that reached what few others do has a mixture and sizes that lead there. Drawn anew from another seed, or with one
fault more or less, it leads near there again by other ways.
"""

from random import Random

from msgspec import structs

from podtide.simulation.faults.mishap import Mishap
from podtide.simulation.faults.table import FAULTS
from podtide.simulation.run.fault_plan import FaultPlan

_LONGEST_SECONDS = 600.0


def varied(plan: FaultPlan, seed: int, chance: Random) -> FaultPlan:
    """A plan like this one, with the random choices of another seed and one thing changed."""
    plan = structs.replace(plan, seed=seed)
    change = chance.choice((_same, _longer, _other_order, _fewer, _without_one, _with_one))
    return change(plan, chance)


def _same(plan: FaultPlan, _chance: Random) -> FaultPlan:
    return plan


def _longer(plan: FaultPlan, chance: Random) -> FaultPlan:
    """All of it twice as slow."""
    del chance
    times = min(2.0, _LONGEST_SECONDS / plan.trouble_seconds)
    later = tuple(
        structs.replace(each, at_seconds=round(each.at_seconds * times, 3)) for each in plan.mishaps
    )
    return structs.replace(plan, trouble_seconds=plan.trouble_seconds * times, mishaps=later)


def _other_order(plan: FaultPlan, _chance: Random) -> FaultPlan:
    return structs.replace(plan, has_drawn_order=not plan.has_drawn_order)


def _fewer(plan: FaultPlan, chance: Random) -> FaultPlan:
    """Half of the mishaps."""
    return structs.replace(
        plan,
        mishaps=tuple(each for each in plan.mishaps if chance.random() < 0.5),  # noqa: PLR2004 - half
    )


def _without_one(plan: FaultPlan, chance: Random) -> FaultPlan:
    if not plan.line_faults:
        return plan
    left_out = chance.choice(plan.line_faults)
    return structs.replace(plan, line_faults=tuple(name for name in plan.line_faults if name != left_out))


def _with_one(plan: FaultPlan, chance: Random) -> FaultPlan:
    absent = [
        name
        for name, fault in FAULTS.items()
        if name not in plan.line_faults and not isinstance(fault, Mishap)
    ]
    if not absent:
        return plan
    added = chance.choice(absent)
    kept = {*plan.line_faults, added}
    return structs.replace(plan, line_faults=tuple(name for name in FAULTS if name in kept))
