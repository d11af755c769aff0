"""How many addresses a node should request: the decision alone, so that it can be replaced.

`ExactPolicy` is podtide's: one step from demand to request. Simulations replace it by those of other agents, with which
podtide is compared and shares clusters. Everything else around the decision is the same program.
"""

from typing import Protocol

from msgspec import Struct

from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.scaling import decide_request


class PoolSituation(Struct, frozen=True, kw_only=True):
    """The addresses of one family on the node, over all of its network containers, and the demand for them."""

    demand: int
    primaries: int
    requested: int
    held: int
    assigned: int
    releasing: int


class Decided(Protocol):
    """A decision. Its text gives the reasons with their numbers."""

    @property
    def request(self) -> int:
        """How many addresses to request, over all of the family's network containers."""
        ...


class RequestPolicy(Protocol):
    """Decides how many addresses to request."""

    @property
    def states_demand(self) -> bool:
        """Whether the request depends only on demand and the parameters in force, so that these are stated beside it."""
        ...

    def decide(self, situation: PoolSituation, scaler: Scaler) -> Decided:
        """The request for this situation."""
        ...


class ExactPolicy:
    """From demand to request in one step (see `core.subnet.scaling`)."""

    states_demand = True

    def decide(self, situation: PoolSituation, scaler: Scaler) -> Decided:
        """The request for this situation, whatever is requested and held now."""
        return decide_request(situation.demand, scaler, situation.primaries)
