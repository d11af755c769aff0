"""A network container at the allocator: what a node wishes for, and what it was granted."""

from typing import TypedDict

from msgspec import Struct

from podtide.core.machine_identity import UNKNOWN_MACHINE, MachineIdentity
from podtide.core.subnet.statement import StatedDemand


class LastWish(Struct, frozen=True, kw_only=True):
    """The wish that an older one replaces. Empty: the container is deleted, or has no address yet."""

    request_uid: str = ""
    generation: int = 0


class Wish(Struct, frozen=True, kw_only=True):
    """A node's whole request to a subnet. `id` is the Node's uid."""

    id: str
    network: str
    subnet: str
    cluster: str
    node: str
    request_uid: str
    """The uid of the NodeNetworkConfig."""
    generation: int
    """The NodeNetworkConfig's generation: of two wishes with one request_uid, the higher is the newer."""
    count: int
    """Secondary addresses wanted in all."""
    release: tuple[str, ...] = ()
    """Names of addresses the node gives back for good; its primary's is `core.subnet.grants.primary_name`."""
    waiting_pods: int = 0
    """Pods on the node that have no address: nodes with more of them are served first."""
    stated: StatedDemand | None = None
    """What is known of the node's demand; None is a container that has asked for nothing yet."""
    statement_number: int = 0
    """Grows with every statement of the node: of two wishes with one generation, what the higher states is the newer."""
    cluster_uid: str = ""
    """Who the cluster is (see `core.subnet.cluster_identity`); the container records it. "" for a caller that is not a cluster."""
    seen: int = 0
    """The highest version of any container in the subnet that the cluster has seen (see `core.subnet.store_continuity`)."""
    machine: MachineIdentity = UNKNOWN_MACHINE
    """What the living Node states it runs on; one that is not known leaves what was stated before."""
    instead_of: LastWish | None = None
    """Given only for a request object that went back, as after a restore of etcd: the last wish that was taken, as read
    before a fresh read showed the older object (see `core.subnet.grants.is_taken_anew`)."""


class GrantedAddress(Struct, frozen=True):
    """A secondary address. Its name is minted for this grant and never used again."""

    name: str
    ip: str


class CidrInUse(Struct, frozen=True):
    """A CIDR that a container has addresses of, and its gateway."""

    cidr: str
    gateway: str


class ContainerReservation(Struct, frozen=True, kw_only=True):
    """What another program gave a node of a subnet, before podtide took its place. `id` is the Node's uid."""

    id: str
    network: str
    subnet: str
    cluster: str
    cluster_uid: str
    node: str
    primary: str
    request_uid: str
    """The uid of the NodeNetworkConfig that shows them, and its generation: the first wish is not older."""
    generation: int
    addresses: tuple[str, ...] = ()


class AllocatedContainer(Struct, frozen=True, kw_only=True):
    """A network container: the addresses that a node has of a subnet."""

    id: str
    network: str
    subnet: str
    cluster: str
    node: str
    primary: str
    gateway: str
    """Of the CIDR that the primary is in."""
    cidr: str
    """The subnet's CIDR that the primary is in."""
    addresses: tuple[GrantedAddress, ...]
    """In the order of their names' minting."""
    version: int
    """Grows with every change of what is granted, and never otherwise; drawn from the subnet's sequence."""
    request_uid: str
    generation: int
    wanted: int
    owed: int
    """How many more were wanted than could be given."""
    cidrs: tuple[CidrInUse, ...] = ()
    """Every CIDR that its addresses are in, the primary's first: prefix length and gateway are those of the CIDR."""
    cluster_uid: str = ""
    """The uid of the cluster that it is of; "" for one from before clusters had uids."""


class MoveResult(Struct, frozen=True, kw_only=True):
    """The result of moving a former Node's addresses to its machine's present Node."""

    container: AllocatedContainer
    moved: tuple[str, ...]
    """The addresses that came, a former primary among them."""
    missing: int
    """How many the former Node had beside these when it was removed: others may have them."""


class ContainerFilter(TypedDict, total=False):
    """Narrows a list of containers, each key in its own way; "" does not. `limit` is for a page, 500 if not given."""

    cluster: str
    node: str
    network: str
    subnet: str
    limit: int
    more: str
    """The page before's token for the next."""


class ContainerPage(Struct, frozen=True):
    """One page of a list; `more` is the token for the next, "" on the last."""

    items: tuple[AllocatedContainer, ...]
    more: str = ""
