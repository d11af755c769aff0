"""What clusters and the allocator tell each other about who they are, and what a store that went back has to know."""

from msgspec import Struct


class SeenVersion(Struct, frozen=True):
    """The highest version of a container in a subnet that a cluster has seen."""

    network: str
    subnet: str
    version: int


class TermClaim(Struct, frozen=True, kw_only=True):
    """A controller's claim to act for a cluster."""

    cluster: str
    cluster_uid: str
    """The uid of the cluster's namespace kube-system."""
    holder: str
    """Who acts: one controller's own name."""
    seen: tuple[SeenVersion, ...] = ()
    """Every subnet that the cluster has to do with; version 0 where it has seen none yet."""


class OpenedTerm(Struct, frozen=True, kw_only=True):
    """The answer to a claim: the term is the holder's as long as it renews it."""

    recovery: int = 0
    """The number of the recovery that waits for this cluster's report; 0 for none."""
    recovering: str = ""
    """Why the store grants nothing, and which clusters it waits for; "" when it does grant."""
    reached: tuple[SeenVersion, ...] = ()
    """How far each subnet that the claim names has come, by deletions too: seen from now on, although no container shows it."""


class HeldAddress(Struct, frozen=True):
    """A secondary address that a node has, by the name it was granted with."""

    name: str
    ip: str


class HeldContainer(Struct, frozen=True, kw_only=True):
    """What a node has of a subnet by its NodeNetworkConfig, as reported to a store that recovers."""

    id: str
    network: str
    subnet: str
    cluster: str
    cluster_uid: str
    node: str
    primary: str
    version: int
    request_uid: str
    generation: int
    recovery: int
    """The recovery that asked for the report: a late report for an earlier one must change nothing."""
    addresses: tuple[HeldAddress, ...] = ()
    gave_up: int = 0
    """How many more its NodeNetworkConfig shows by that version, which the node has named for release."""
    is_foreign: bool = False
    """Whether another program still serves the node: then the names are its own, and here the addresses get new ones."""


class ShownAddresses(Struct, frozen=True, kw_only=True):
    """Addresses that living pods of a node show and no NodeNetworkConfig has: the pods outlived their Node."""

    network: str
    subnet: str
    cluster: str
    cluster_uid: str
    node: str
    recovery: int
    """As for `HeldContainer`."""
    addresses: tuple[str, ...]


class ClusterRecord(Struct, frozen=True, kw_only=True):
    """The allocator's record of a cluster."""

    name: str
    uid: str = ""
    """"" until a controller opened a term under the name."""
    containers: int = 0
    """Those that record this uid."""
    of_other_uids: int = 0
    """Containers under the name that record another uid: of a cluster that had the name before."""
    without_uid: int = 0
    """Containers under the name that record none: from before clusters had uids, and not seen since."""
    holder: str = ""
    """Who has a term now."""
    term_until: float = 0.0
    """Wall-clock seconds of the allocator until when, if it is not renewed; 0 where there is none."""
    reported: bool = True
    """Whether the store, where it recovers, has its report."""


class ClusterRegistry(Struct, frozen=True, kw_only=True):
    """All clusters, and whether the store recovers."""

    clusters: tuple[ClusterRecord, ...]
    recovering: str = ""
    """Why the store grants nothing; "" when it does grant."""
    since: float = 0.0
    """Wall-clock seconds since when."""
    awaited: tuple[str, ...] = ()
    """Clusters whose reports it waits for."""
