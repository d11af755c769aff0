"""A warning for nodes whose addresses are in several CIDRs while their network can have only one IPv4 gateway.

The `bridge` plugin gives the node's bridge the gateway of the first pod, and fails every ADD whose address has another
one. The agent does not learn of that: it has assigned an address, and the next call is a DEL. So it warns beforehand, or
an operator would have to find the reason in the runtime's log.
"""

from collections.abc import Iterable

from podtide.agent.request.address_space import space_of
from podtide.agent.request.node_config import NodeNetwork
from podtide.agent.request.subnets import NodeSubnets
from podtide.runtime.logging import Logger

TOLD = "the bridge cannot serve all addresses of this node"
_REASON = (
    "the bridge plugin takes one IPv4 gateway, and the addresses are in several CIDRs: of all but one of them it will "
    "refuse every pod; use --network-type ptp"
)
_IPV4 = 4


class GatewayWarning:
    """Logs once that there is more than one CIDR, and again when they change."""

    def __init__(self, subnets: NodeSubnets, log: Logger) -> None:
        self._subnets = subnets
        self._log = log
        self._told: tuple[str, ...] = ()

    def look(self, networks: Iterable[NodeNetwork]) -> None:
        """Check the CIDRs of the node's addresses."""
        cidrs = tuple(sorted({cidr for network in networks for cidr in self._cidrs(network)}))
        if len(cidrs) > 1 and cidrs != self._told:
            self._log.warning(TOLD, reason=_REASON, cidrs=cidrs)
        self._told = cidrs

    def _cidrs(self, network: NodeNetwork) -> set[str]:
        """The CIDRs that pods' addresses are in, as far as they are known."""
        if network.container.family != _IPV4:
            return set()
        spaces = (*network.spaces, *self._subnets.spaces(network.subnet))
        found = (space_of(ip, spaces) for ip in network.container.addresses.values())
        return {space.cidr for space in found if space is not None}
