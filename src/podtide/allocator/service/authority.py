"""The allocator as one cluster's credential sees it.

A cluster may read the subnets it shares with others, and how full they are; it may not change them. Of containers, and
of who is owed, it sees its own alone. The administration sees and may do everything: it has the allocator itself.

Which batch is in force in a shared subnet is decided by every cluster's controller from the same counts, so each may read
them, which name no node, and put in force what it decided. The bounds that they decide within are each cluster's own to set.
"""

from typing import Unpack

from msgspec.structs import replace

from podtide.allocator.containers import ContainerFilter, ContainerPage
from podtide.allocator.errors import NotAllowed
from podtide.allocator.interceptor import AllocatorInterceptor, AllocatorOperation, T
from podtide.allocator.port import Allocator
from podtide.allocator.quarantine import QuarantineFilter, QuarantinePage
from podtide.allocator.subnets import CidrHolders, Debt

_SHARED = frozenset(
    {
        *("get_subnet", "list_subnets", "holders", "owed", "demand", "put_in_force"),
        *("utilization", "history", "usage_history"),
    }
)
"""What every cluster may ask about a subnet; all else that is not about the cluster itself is refused."""
_ABOUT = {
    "set_bounds": "bounds",
    "open_term": "terms",
    "close_term": "terms",
    "keep_for_pods": "reports",
    "finish_report": "reports",
}
"""What an operation of a cluster is about, unless it is about containers."""


class CallerAllocator(AllocatorInterceptor):
    """The allocator port, limited to one cluster."""

    def __init__(self, allocator: Allocator, cluster: str) -> None:
        super().__init__(allocator)
        self._cluster = cluster

    async def intercept(self, request: AllocatorOperation[T]) -> T:
        """Refuse what is another cluster's, and what only the administration may do."""
        if not request.cluster and request.verb not in _SHARED:
            raise NotAllowed(
                f"the token is for cluster {self._cluster}, and may not {request.verb.replace('_', ' ')} "
                f"{request.subject}: use one for administration"
            )
        if request.cluster not in {"", self._cluster}:
            raise NotAllowed(
                f"the token is for cluster {self._cluster}, and not for the {_ABOUT.get(request.verb, 'containers')} of "
                f"{request.cluster}: use that cluster's token"
            )
        return await request.send(self._inner)

    async def holders(self, network: str, name: str, cidr: str) -> CidrHolders:
        """The containers that have addresses of a CIDR (its own only)."""
        held = await super().holders(network, name, cidr)
        return replace(held, holders=tuple(each for each in held.holders if each.cluster == self._cluster))

    async def owed(self, network: str, name: str) -> tuple[Debt, ...]:
        """The containers that are owed addresses, in the order they will be served (its own only)."""
        debts = await super().owed(network, name)
        return tuple(debt for debt in debts if debt.cluster == self._cluster)

    async def quarantined(self, **narrowed: Unpack[QuarantineFilter]) -> QuarantinePage:
        """One page of what is in quarantine, by removed container (its own only, also when it names no cluster)."""
        narrowed["cluster"] = narrowed.get("cluster") or self._cluster
        return await super().quarantined(**narrowed)

    async def list_containers(self, **narrowed: Unpack[ContainerFilter]) -> ContainerPage:
        """One page of containers (its own only, also when it names no cluster)."""
        narrowed["cluster"] = narrowed.get("cluster") or self._cluster
        return await super().list_containers(**narrowed)
