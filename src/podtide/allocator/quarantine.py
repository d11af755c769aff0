"""What removed nodes left: addresses that are kept from others until the controller releases them."""

from typing import TypedDict

from msgspec import Struct

from podtide.core.machine_identity import MachineIdentity


class Quarantined(Struct, frozen=True, kw_only=True):
    """The addresses that a removed container left, which are kept until the controller releases them."""

    container: str
    cluster: str
    cluster_uid: str
    """"" for what was removed before clusters had uids."""
    node: str
    network: str
    subnet: str
    addresses: tuple[str, ...]
    machine: MachineIdentity
    """What its Node last stated to run on."""
    until: float
    """Wall-clock seconds of the allocator, before which they should not be released."""
    seconds_left: float
    """How long that is, by the allocator's clock; 0 when it is over."""


class QuarantineFilter(TypedDict, total=False):
    """Narrows a list of what is in quarantine, as `ContainerFilter` does a list of containers."""

    cluster: str
    node: str
    due: bool
    """Only quarantines that are over."""
    limit: int
    more: str


class QuarantinePage(Struct, frozen=True):
    """One page of a list; `more` is the token for the next, "" on the last."""

    items: tuple[Quarantined, ...]
    more: str = ""
