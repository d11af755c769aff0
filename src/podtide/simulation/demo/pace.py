"""How patient the programs of a demonstration are: a minute must be enough to see what takes a quarter of an hour."""

from podtide.allocator.store import StoreRules
from podtide.runtime.settings import Settings
from podtide.simulation.nodes.kubelet import Habits
from podtide.simulation.world.world import Customs

_SIDE_BY_SIDE = 8
"""Sandboxes that a kubelet sets up at once: enough to be quick, few enough for a laptop."""


def customs_for(speed: float) -> Customs:
    """How things are done. What does not wait for its own sake (gathering, an ADD's wait) is as always."""
    settings = Settings(
        answer_wait_seconds=6.0 / speed,
        starved_dwell_seconds=3.0 / speed,
        shrink_delay_seconds=3.0 / speed,
        cooldown_seconds=3.0 / speed,
        poll_seconds=0.5 / speed,
    )
    return Customs(settings=settings, habits=Habits(retry_seconds=2.0 / speed, at_once=_SIDE_BY_SIDE))


def rules_for(speed: float) -> StoreRules:
    """How long addresses rest. A quarantine as short as this is safe only where the machine is known to be off."""
    return StoreRules(cooldown_seconds=3.0 / speed, quarantine_seconds=5.0 / speed)
