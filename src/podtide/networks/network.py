"""A secondary network as its configuration describes it: the ranges, and the names of what is kept for each.

The controller reads configurations from NetworkAttachmentDefinitions and the agent from the plugin. Both must come to
the same names, or one makes a pool that the other never finds; so they ask here.

A network is its `network_name`. An unnamed one is its first range: unnamed networks of one range are one network, and
those of different ranges have nothing to do with each other.
"""

from msgspec import Struct

from podtide.cni.ipam_config import IpamConfig
from podtide.core.networks.slices import Slicing
from podtide.core.ranges import AddressRange, IPAddress, IPNetwork
from podtide.resources.names import Naming, SlicedRange, classic_pool_name, normalise_range, reservation_name


class NetworkRange(Struct, frozen=True, kw_only=True):
    """One range of a secondary network: pods get one address from each."""

    network_name: str
    """The network's `network_name`, "" for an unnamed one."""
    configuration_name: str
    """The CNI configuration's name, which Whereabouts uses where there is no `network_name`."""
    addresses: AddressRange
    slice_size: int | None
    """The prefix length of a node's slice; None in classic mode, where all nodes share one pool."""
    further: bool
    """Whether the network has another range before this one."""

    @property
    def slicing(self) -> Slicing | None:
        """How the range is cut; None in classic mode."""
        return None if self.slice_size is None else Slicing(self.addresses, self.slice_size)

    def classic_pool_name(self) -> str:
        """The IPPool that all nodes share."""
        return classic_pool_name(self.network_name, str(self.addresses.network))

    def node_slice_pool_name(self, naming: Naming = Naming.PODTIDE) -> str:
        """The NodeSlicePool that lists the slices of all nodes."""
        return self._names.node_slice_pool_name(naming)

    def node_pool_name(self, node_name: str, slice_: IPNetwork, naming: Naming = Naming.PODTIDE) -> str:
        """The IPPool of one node's slice, and the Lease of who writes it."""
        return self._names.node_pool_name(node_name, slice_, naming)

    def reservation_name(self, address: IPAddress) -> str:
        """The OverlappingRangeIPReservation of one of its addresses."""
        return reservation_name(self.network_name, address)

    @property
    def _names(self) -> SlicedRange:
        return SlicedRange(
            network_name=self.network_name,
            configuration_name=self.configuration_name,
            range=self.addresses.network,
            further=self.further,
        )


class Network(Struct, frozen=True, kw_only=True):
    """A secondary network."""

    key: str
    """What tells it from all others."""
    ranges: tuple[NetworkRange, ...]
    guarded: bool
    """Whether each address is reserved across all pools, so that overlapping ranges never collide."""


def network_of(config: IpamConfig) -> Network | None:
    """The secondary network that a configuration describes; None for the primary one, which has the node's pool."""
    if config.is_primary:
        return None
    ranges = tuple(
        NetworkRange(
            network_name=config.network_name,
            configuration_name=config.name,
            addresses=item.addresses,
            slice_size=item.slice_size,
            further=place > 0,
        )
        for place, item in enumerate(config.ranges)
    )
    return Network(
        key=config.network_name or normalise_range(str(ranges[0].addresses.network)),
        ranges=ranges,
        guarded=config.enable_overlapping_ranges,
    )
