"""A node whose network can have one IPv4 gateway alone, and whose addresses are in several CIDRs: that is told.

The `bridge` plugin gives the node's bridge the gateway of the first pod, and fails every ADD whose address has another
one. To the agent all is well: it has given an address, and hears no more than a DEL. So it says beforehand what an
operator would else have to find in the runtime's log.
"""

from collections.abc import Iterable

from podtide.agent.request.address_space import space_of
from podtide.agent.request.node_config import Network
from podtide.agent.request.subnets import Subnets
from podtide.runtime.logging import Logger

TOLD = "the bridge cannot serve all addresses of this node"
_REASON = (
    "the bridge plugin takes one IPv4 gateway, and the addresses are in several CIDRs: of all but one of them it will "
    "refuse every pod; use --network-type ptp"
)
_IPV4 = 4


class GatewayWarning:
    """Tells of a second CIDR, once, and again when there are others."""

    def __init__(self, subnets: Subnets, log: Logger) -> None:
        self._subnets = subnets
        self._log = log
        self._told: tuple[str, ...] = ()

    def look(self, networks: Iterable[Network]) -> None:
        """Look at what the node has now."""
        cidrs = tuple(sorted({cidr for network in networks for cidr in self._cidrs(network)}))
        if len(cidrs) > 1 and cidrs != self._told:
            self._log.warning(TOLD, reason=_REASON, cidrs=cidrs)
        self._told = cidrs

    def _cidrs(self, network: Network) -> set[str]:
        """The CIDRs that pods' addresses are in, as far as they are known."""
        if network.container.family != _IPV4:
            return set()
        spaces = (*network.spaces, *self._subnets.spaces(network.subnet))
        found = (space_of(ip, spaces) for ip in network.container.addresses.values())
        return {space.cidr for space in found if space is not None}
