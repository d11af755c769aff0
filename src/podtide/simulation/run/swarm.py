"""Plans of which everything is drawn: what there is, how much of it, and what goes wrong how often.

Where all faults strike all the time, each hides what the others would show: a program that is restarted every minute
never gets old enough for its slow mistakes. So a swarm of plans has them in many mixtures, none and one alone among
them ("Swarm testing", Groce and others, 2012).
"""

from collections.abc import Mapping
from random import Random

from msgspec import structs

from podtide.runtime.randomness import seeded_randomness
from podtide.simulation.faults.line_fault import LineFault
from podtide.simulation.faults.mishap import is_of_networks, is_of_placement
from podtide.simulation.faults.plugin_fault import PluginFault
from podtide.simulation.faults.table import FAULTS
from podtide.simulation.run.fault_plan import FaultPlan, fault_plan_for

_NONE, _ONE_ALONE, _ALL = 0.06, 0.3, 0.45
"""Parts of the plans: without faults, with one alone, with all at their usual rates; up to each number. The rest has some."""
_PRESENT = 0.5
_TIMES = (0.25, 1.0, 1.0, 3.0)
_TIMES_ALONE = (1.0, 5.0, 10.0)
_HIGHEST_RATE = 0.6
"""A line on which nearly nothing gets through shows only that nothing happens."""
_NODES = (1, 2, 2, 3, 3, 4, 5, 8)
_TROUBLE_SECONDS = (20.0, 45.0, 90.0, 180.0, 420.0)
_NETWORKS = (0, 0, 0, 1, 2, 3, 4)
_SUBNETS = ("10.0.0.0/29", "10.0.0.0/28", "10.0.0.0/27", "10.0.0.0/26", "10.0.0.0/24")
_BATCHES = (1, 2, 3, 4, 8, 16, 32)
_BUFFERS = ("0", "1/4", "1/2", "1")
_PRESSURES = (0.1, 0.5, 0.9, 1.0, 1.1, 1.6)
_WITH_PLACEMENT = 0.15
_WITH_DRAWN_ORDER = 0.5
_WITH_REPLICAS = 0.4
_CONTACTS = ((None, None), (None, None), (150.0, 220.0), (30.0, 160.0))
"""Contact timeouts and quarantines; short ones come to an end within a run. A dead watch may be taken for a living one
for 75 seconds, and clocks jump by half a minute: a quarantine lasts longer than both together."""


def swarm_plan_for(seed: int) -> FaultPlan:
    """The plan that is drawn from a seed, all of it."""
    chance = seeded_randomness(f"{seed}/swarm")
    networks = chance.choice(_NETWORKS)
    placement = chance.random() < _WITH_PLACEMENT
    possible = [
        name
        for name, fault in FAULTS.items()
        if (networks or not is_of_networks(fault)) and (placement or not is_of_placement(fault))
    ]
    frequencies = _mixture(chance, possible)
    plan = fault_plan_for(
        seed,
        nodes=chance.choice(_NODES),
        faults=frozenset(frequencies),
        trouble_seconds=chance.choice(_TROUBLE_SECONDS),
        networks=networks,
        placement=placement,
        frequencies=frequencies,
    )
    contact_timeout, quarantine = chance.choice(_CONTACTS)
    return structs.replace(
        plan,
        subnet=chance.choice(_SUBNETS),
        batch=chance.choice(_BATCHES),
        buffer=chance.choice(_BUFFERS),
        pressure=plan.pressure if placement else chance.choice(_PRESSURES),
        has_drawn_order=chance.random() < _WITH_DRAWN_ORDER,
        contact_timeout_seconds=contact_timeout,
        quarantine_seconds=quarantine,
        replicas=chance.random() < _WITH_REPLICAS,
    )


def _mixture(chance: Random, possible: list[str]) -> Mapping[str, float]:
    """Which faults there are, each with how many times as often as usual it strikes."""
    drawn = chance.random()
    if drawn < _NONE:
        return {}
    if drawn < _ONE_ALONE:
        name = chance.choice(possible)
        return {name: _bounded(name, chance.choice(_TIMES_ALONE))}
    if drawn < _ALL:
        return dict.fromkeys(possible, 1.0)
    present = [name for name in possible if chance.random() < _PRESENT]
    return {name: _bounded(name, chance.choice(_TIMES)) for name in present}


def _bounded(name: str, times: float) -> float:
    """So many times as often as usual, as far as something still gets through."""
    fault = FAULTS[name]
    if isinstance(fault, LineFault | PluginFault) and fault.rate * times > _HIGHEST_RATE:
        return max(1.0, _HIGHEST_RATE / fault.rate)
    return times
