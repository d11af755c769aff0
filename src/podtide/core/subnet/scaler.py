"""The parameters a node's pool is sized by, and which of several sources is in force.

A batch B, a buffer mf (the part of a batch to keep free; the design papers call it the minimum-free fraction) and a
maximum. They reach a node by two objects: the ClusterSubnet (what is in force for the subnet, decided once for all nodes)
goes before the node's own NodeNetworkConfig. What arrives there was written by other programs, so it is clamped rather
than refused: a node with odd parameters must still get its pods their addresses. What a person states is refused instead
(`Scaler` validates).
"""

from fractions import Fraction
from math import ceil

from msgspec import Struct

from podtide.core.errors import InvalidScaler
from podtide.core.exact import text

DEFAULT_BATCH = 16
DEFAULT_BUFFER = Fraction(1, 2)
DEFAULT_MAX_IPS = 250


class Scaler(Struct, frozen=True):
    """B, mf and the most secondary addresses a node may ask for."""

    batch: int = DEFAULT_BATCH
    buffer: Fraction = DEFAULT_BUFFER
    max_ips: int = DEFAULT_MAX_IPS

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise InvalidScaler(f"batch {self.batch} is too small: addresses come in batches of at least 1")
        if self.buffer < 0:
            raise InvalidScaler(
                f"buffer {text(self.buffer)} is negative: give 0 or more, such as 0.5 for half a batch"
            )
        if self.max_ips < 1:
            raise InvalidScaler(
                f"maximum of {self.max_ips} addresses is too small: a node may hold at least 1"
            )

    @property
    def minimum_free(self) -> Fraction:
        """The threshold m = mf·B: with fewer free, a burst of pods would wait."""
        return self.buffer * self.batch

    @property
    def maximum_free(self) -> Fraction:
        """The threshold M = (mf + 1)·B: with as many free, a whole batch is idle."""
        return (self.buffer + 1) * self.batch


EXHAUSTED_BATCH = 1
EXHAUSTED_BUFFER = Fraction(1)
"""By these a node sizes its pool in an exhausted subnet if it is told no batch: it keeps one address free."""

STARVED_BUFFER = Fraction(0)
"""When somebody waits for an address and none is left, a node keeps not even that one."""


_STARVED_NODE = (EXHAUSTED_BATCH, 0)
"""Batch and request percentage that nodes of a starved subnet are told."""


class NodeScaler(Struct, frozen=True):
    """What a NodeNetworkConfig's `status.scaler` says. None is a field that is not there."""

    batch: int | None = None
    request_percent: int | None = None
    max_ips: int | None = None


class SubnetScaler(Struct, frozen=True):
    """What a ClusterSubnet's `status.scaler` says is in force for every node of the subnet."""

    batch: int
    buffer: Fraction


def effective_scaler(node: NodeScaler, subnet: SubnetScaler | None, *, exhausted: bool = False) -> Scaler:
    """The parameters in force on a node: the ClusterSubnet's, else exhaustion's, else the node's own.

    `exhausted` is what a ClusterSubnetState says. It counts only where there is no ClusterSubnet: the batch there was
    decided from demand, and may be larger than 1 in an exhausted subnet. A ClusterSubnetState has no word for starved:
    there the node's own scaler says it, and that goes before exhaustion, or the last addresses would stay with nodes
    that do not need them.
    """
    max_ips = node.max_ips if node.max_ips is not None and node.max_ips >= 1 else DEFAULT_MAX_IPS
    if subnet is not None:
        batch, buffer = subnet.batch, subnet.buffer
    elif exhausted and (node.batch, node.request_percent) != _STARVED_NODE:
        batch, buffer = EXHAUSTED_BATCH, EXHAUSTED_BUFFER
    else:
        batch = DEFAULT_BATCH if node.batch is None else node.batch
        buffer = DEFAULT_BUFFER if node.request_percent is None else Fraction(node.request_percent, 100)
    return Scaler(batch=min(max(batch, 1), max_ips), buffer=max(buffer, Fraction(0)), max_ips=max_ips)


def request_percent(buffer: Fraction) -> int:
    """The fraction mf as a NodeNetworkConfig's `requestThresholdPercent`, rounded up so that nobody keeps less free than meant."""
    return ceil(buffer * 100)


def release_percent(request: int, release: int | None = None) -> int:
    """A NodeNetworkConfig's `releaseThresholdPercent` for a request threshold: Mf = mf + 1, in percent.

    A stated one that is less is refused: releasing a batch would then make the pool ask for it again at once.
    """
    least = request + 100
    if release is None:
        return least
    if release < least:
        raise InvalidScaler(
            f"releaseThresholdPercent {release} is less than requestThresholdPercent {request} + 100: "
            f"the pool would give back a batch and ask for it again; set it to {least} or more"
        )
    return release
