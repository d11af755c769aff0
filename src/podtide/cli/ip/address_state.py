"""The states of an address, and what it is to one subnet or network."""

from enum import StrEnum

from msgspec import Struct

from podtide.core.errors import InvalidInput
from podtide.core.ranges import IPAddress, parse_address, parse_network


class AddressState(StrEnum):
    """What an address is at the moment."""

    FREE = "free"
    KEPT_BACK = "kept back"
    """Never given: a network or last address, a gateway, or what its owner keeps back or excludes."""
    DRAINING = "draining"
    """Not reserved, and of a CIDR that leaves its subnet: it is not given any more."""
    PRIMARY = "primary"
    IDLE = "held idle"
    """A node has it for its next pods."""
    HELD = "held"
    """A node of another cluster has it, or one whose NodeNetworkConfig does not show it: what for is not known here."""
    ON_POD = "on a pod"
    RELEASING = "being released"
    QUARANTINED = "quarantined"
    RESERVED = "reserved"
    """Of a secondary network: reserved for a pod, and no pool has it."""
    LEAKED = "leaked"
    """Of a secondary network: held for a pod that does not seem to have it any more."""
    UNASSIGNED = "in no node's slice"
    UNKNOWN = "not known"
    HOST = "a node's own"
    """On the host's network: podtide did not give it."""


class AddressFinding(Struct, frozen=True, kw_only=True):
    """What the address is to one subnet or network."""

    network: str
    """The network of a subnet, where it is known, or a secondary network."""
    subnet: str = ""
    """"" for an address of a secondary network."""
    cidr: str = ""
    state: AddressState
    words: str
    """The state in a sentence."""
    cluster: str = ""
    """By its name at the allocator."""
    node: str = ""
    pod: str = ""
    """As namespace/name."""
    interface: str = ""
    grant: str = ""
    """The name of the grant, by which a node gives it back."""
    container: str = ""
    pool: str = ""
    """The IPPool that has it."""
    reservation: str = ""
    since: str = ""
    """Since when at the latest, RFC 3339; "" if nothing tells."""
    until: str = ""
    """Of a quarantine: when it ends at the earliest."""

    @property
    def place(self) -> str:
        """The subnet or network, for people."""
        if self.subnet:
            return f"subnet {self.network}/{self.subnet}" if self.network else f"subnet {self.subnet}"
        return f"secondary network {self.network}" if self.network else "a network without a definition"


def is_address(text: str, address: IPAddress) -> bool:
    """Whether the text is this address, however it is written; a prefix length after it does not count."""
    try:
        return parse_address(text.partition("/")[0]) == address
    except InvalidInput:
        return False


def is_within(address: IPAddress, cidr: str) -> bool:
    """Whether the address is in the CIDR; text that is not a CIDR has none."""
    try:
        return address in parse_network(cidr)
    except InvalidInput:
        return False
