"""An agent that may have been removed without knowing hands out nothing new (design R5).

Whether that does harm depends on what others were granted meanwhile, hours later perhaps. So it is held where it shows:
a free address of a pool is assigned while the agent has long heard nothing of its NodeNetworkConfig.
"""

from collections.abc import Callable

from podtide.core.audit.invariants import Violation
from podtide.core.pool.states import State
from podtide.simulation.trace import PoolMove

_ONE_HOLDER = 1
"""The invariant that is at risk."""
_IN_FLIGHT_SECONDS = 60.0
"""By then every answer has arrived that was on its way when contact ended."""


class ContactCheck:
    """Finds addresses that were assigned without contact. `since` tells for how long a node's agent hears of nothing."""

    def __init__(
        self,
        since: Callable[[str], float | None],
        find: Callable[[Violation], None],
        *,
        contact_timeout_seconds: float,
    ) -> None:
        self._since = since
        self._find = find
        self._within_seconds = contact_timeout_seconds + _IN_FLIGHT_SECONDS
        self._states: dict[tuple[str, str], State | None] = {}

    def move(self, move: PoolMove) -> None:
        """An address moved in a pool."""
        place = move.node, move.name
        before, self._states[place] = self._states.get(place), move.state
        if before is not State.AVAILABLE or move.state is not State.ASSIGNED:
            return
        since = self._since(move.node)
        if since is not None and move.at > since + self._within_seconds:
            self._find(
                Violation(
                    _ONE_HOLDER,
                    move.ip,
                    f"{move.ip} was given to {move.owner} on {move.node}, whose agent had heard nothing of its "
                    f"NodeNetworkConfig for {move.at - since:.0f} s",
                )
            )
