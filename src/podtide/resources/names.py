"""What objects are called (design W14): a name is how pools, slices and reservations are found without a search.

They must come out as Whereabouts forms them, byte for byte, or two programs keep two books of one range. Every name
is checked before it is returned: a range, a network or a node can yield text that is not a valid Kubernetes name,
and it is better to refuse it here, with the reason, than by an API server in the middle of an ADD.
"""

import re
from enum import StrEnum

from msgspec import Struct

from podtide.core.errors import InvalidInput, InvalidRange
from podtide.core.ranges import IPAddress, IPNetwork, parse_address

LONGEST_NAME = 253
LONGEST_LABEL_VALUE = 63
"""A node chooses its subnet by the value of a label: one with a longer name could not be chosen. Namespaces are as long."""
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_LONGEST_KEY = len(str(2**128))


class InvalidName(InvalidInput):
    """Text that is not a valid name of a Kubernetes object."""


class Naming(StrEnum):
    """The rule that per-node names follow. podtide creates objects by its own (the design paper's), and finds both."""

    PODTIDE = "podtide"
    WHEREABOUTS = "whereabouts"


def is_object_name(text: str) -> bool:
    """Whether this is a valid name of a Kubernetes object."""
    return len(text) <= LONGEST_NAME and _NAME.fullmatch(text) is not None


def is_namespace(text: str) -> bool:
    """Whether this is a valid name of a namespace: one label, without dots."""
    return len(text) <= LONGEST_LABEL_VALUE and re.fullmatch(_LABEL, text) is not None


def normalise_range(cidr: str) -> str:
    """A range as part of a name: `2001:db8::/64` is `2001-db8---64`."""
    return _without_colons(cidr).replace("/", "-")


def normalise_address(address: IPAddress) -> str:
    """An address as part of a name: `fd00::1` is `fd00--1`."""
    return _without_colons(str(address))


def classic_pool_name(network_name: str, cidr: str) -> str:
    """The IPPool of a range that the whole cluster shares."""
    return _name("IPPool", network_name, normalise_range(cidr))


def reservation_name(network_name: str, address: IPAddress) -> str:
    """The OverlappingRangeIPReservation of an address."""
    return _name("OverlappingRangeIPReservation", network_name, normalise_address(address))


def reserved_address(network_name: str, name: str) -> IPAddress | None:
    """The address that a reservation of that network is about; None when the name is not one of the network's.

    The network has to be given: `a-fd00--1` is fd00::1 of the network `a`, but also a:fd00::1 of the unnamed one.
    """
    prefix = f"{network_name}-" if network_name else ""
    if not name.startswith(prefix):
        return None
    try:
        return parse_address(name.removeprefix(prefix).replace("-", ":"))
    except InvalidRange:
        return None


class SlicedRange(Struct, frozen=True, kw_only=True):
    """A range of a network that is cut into slices, as far as names depend on it."""

    network_name: str
    """The IPAM configuration's `network_name`, "" for an unnamed network."""
    configuration_name: str
    """The CNI configuration's `name`: Whereabouts falls back to it."""
    range: IPNetwork
    further: bool = False
    """Whether the network has another range before this one (dual stack)."""

    def node_slice_pool_name(self, naming: Naming = Naming.PODTIDE) -> str:
        """The NodeSlicePool that lists the slices of all nodes."""
        return _name("NodeSlicePool", self._stem(naming))

    def node_pool_name(self, node_name: str, slice_: IPNetwork, naming: Naming = Naming.PODTIDE) -> str:
        """The IPPool of one node's slice, and also the Lease of who writes it."""
        if naming is Naming.WHEREABOUTS:
            return _name("IPPool", self.network_name, node_name, normalise_range(str(slice_)))
        return _name("IPPool", self._stem(naming), node_name)

    def _stem(self, naming: Naming) -> str:
        fallback = self.configuration_name if naming is Naming.WHEREABOUTS else ""
        network, cidr = self.network_name or fallback, normalise_range(str(self.range))
        if not network:
            return cidr
        return f"{network}-{cidr}" if self.further else network


def address_at(network: IPNetwork, key: str) -> IPAddress | None:
    """The address that a key of an IPPool stands for; None when the key is not an offset.

    An offset beyond the range is accepted, as Whereabouts does: a pod may hold that address.
    """
    if not (key.isascii() and key.isdigit() and len(key) <= _LONGEST_KEY):
        return None
    try:
        return network.network_address + int(key)
    except ValueError:  # beyond the last address of the family
        return None


def _without_colons(text: str) -> str:
    return (f"{text}0" if text.endswith(":") else text).replace(":", "-")


def _name(kind: str, *parts: str) -> str:
    name = "-".join(part for part in parts if part)
    if len(name) > LONGEST_NAME:
        raise InvalidName(
            f"{kind} name {name!r} has {len(name)} characters and Kubernetes takes {LONGEST_NAME}: "
            "shorten network_name or the node's name"
        )
    if not _NAME.fullmatch(name):
        raise InvalidName(
            f"{kind} name {name!r} is not a valid Kubernetes name: use lower-case letters, digits, '-' and '.' only, "
            "a letter or digit at both ends and beside each '.'; choose another network_name or range"
        )
    return name
