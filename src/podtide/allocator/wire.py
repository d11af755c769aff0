"""What travels between the HTTP client and the service, known to both: paths' bodies, refusals, and their limits.

What the service answers with are the port's own structs. A field that is not known is refused: a misspelt `release`
would otherwise be a release that never happens.
"""

from http import HTTPStatus
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct, convert
from msgspec.structs import asdict

from podtide.allocator.errors import (
    AllocatorUnavailable,
    AnotherCluster,
    AnotherTerm,
    InForceConflict,
    NoSuchContainer,
    NoSuchSubnet,
    NotAllowed,
    StaleWish,
    StoreRecovering,
    SubnetExists,
    SubnetFull,
    SubnetInUse,
)
from podtide.allocator.limits import (
    LARGEST_NUMBER,
    LARGEST_VERSION,
    LONGEST_NAME,
    LONGEST_REASON,
    LONGEST_STEP,
    MOST_KEPT_BACK,
    MOST_SEEN,
    MOST_WANTED,
    NAME,
)
from podtide.core.errors import InvalidInput, PodtideError
from podtide.core.subnet.scaler import DEFAULT_MAX_IPS

T = TypeVar("T")

LARGEST_BODY_BYTES = 1_000_000
END_OF_TIME_SECONDS = 253_402_300_799
"""The last second of the year 9999, which is the last that a timestamp can say."""

NAME_PATTERN = rf"^{NAME}$(?!\n)"
"""A `$` alone would let a newline through at the end."""

Name = Annotated[str, Meta(max_length=LONGEST_NAME, pattern=NAME_PATTERN)]
"""Of a network, subnet, cluster, node, request or address."""
NameOrNone = Annotated[str, Meta(max_length=LONGEST_NAME, pattern=rf"^({NAME})?$(?!\n)")]
AddressText = Annotated[str, Meta(min_length=1, max_length=64)]
"""An address or a CIDR; whether it is one is the allocator's to say."""
Count = Annotated[int, Meta(ge=0, le=MOST_WANTED)]
Some = Annotated[int, Meta(ge=1, le=MOST_WANTED)]
"""A count that is not 0: of a batch, or of what a node may hold."""
Number = Annotated[int, Meta(ge=0, le=LARGEST_NUMBER)]
"""Of a generation, a statement or a serial."""
Version = Annotated[int, Meta(ge=0, le=LARGEST_VERSION)]
"""Of a container."""
FractionText = Annotated[str, Meta(min_length=1, max_length=64)]
"""A decimal or a fraction, such as 0.5 or 1/3; whether it is one is the allocator's to say."""
MachineText = Annotated[str, Meta(max_length=LONGEST_NAME)]
"""An id of a machine or a boot."""
Cidrs = Annotated[tuple[AddressText, ...], Meta(min_length=1, max_length=1_000)]
Gateways = Annotated[tuple[AddressText, ...], Meta(max_length=1_000)]


class SubnetBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A subnet as a person states it; the path has its name."""

    cidrs: Cidrs
    gateways: Gateways = ()
    keep_back: Annotated[tuple[AddressText, ...], Meta(max_length=MOST_KEPT_BACK)] = ()
    keep_back_first: Count = 0


class GrowthBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """CIDRs to add to a subnet, and gateways of them, each for the CIDR it is in."""

    cidrs: Cidrs
    gateways: Gateways = ()


class ShrinkingBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """CIDRs of a subnet to drain, or to take out at once."""

    cidrs: Cidrs
    at_once: bool = False


class StatedBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of a container's demand (see `core.subnet.statement.StatedDemand`)."""

    low: Count = 0
    high: Count = 0
    demand: Count | None = None
    batch: Count = 0
    buffer: FractionText = "0"
    max_ips: Some = DEFAULT_MAX_IPS
    primaries: Count = 1
    of_two: bool = False


class MachineBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a node states to run on (see `core.machine_identity.MachineIdentity`)."""

    machine_id: MachineText = ""
    system_uuid: MachineText = ""
    boot_id: MachineText = ""


class LastWishBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The wish that was taken last (see `port.LastWish`)."""

    request_uid: Annotated[str, Meta(max_length=LONGEST_NAME)] = ""
    generation: Number = 0


class WishBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that a node wants of a subnet; the path has its cluster and id."""

    network: Name
    subnet: Name
    node: Name
    request_uid: Name
    generation: Number
    count: Count
    release: Annotated[tuple[Name, ...], Meta(max_length=MOST_WANTED)] = ()
    waiting_pods: Count = 0
    stated: StatedBody | None = None
    statement_number: Number = 0
    instead_of: LastWishBody | None = None
    cluster_uid: NameOrNone = ""
    seen: Version = 0
    machine: MachineBody = MachineBody()


class ReservationBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What another program gave a node of a subnet; the path has its cluster and id."""

    network: Name
    subnet: Name
    cluster_uid: Name
    node: Name
    primary: AddressText
    request_uid: Name
    generation: Number
    addresses: Annotated[tuple[AddressText, ...], Meta(max_length=MOST_WANTED)] = ()


class EndingBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Addresses in quarantine that no pod has any more, and why that is certain."""

    addresses: Annotated[tuple[AddressText, ...], Meta(max_length=MOST_WANTED)]
    reason: Annotated[str, Meta(min_length=1, max_length=LONGEST_REASON)]
    cluster_uid: NameOrNone = ""


class Ended(Struct, frozen=True):
    """How many addresses became free."""

    ended: int


class BoundsBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bounds that a cluster sets for a subnet's batch; the path has the cluster."""

    batch: Some
    buffer: FractionText
    lower: FractionText
    upper: FractionText
    min_batch: Some = 1
    fixed: Some | None = None


class InForceBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters to put in force for the nodes of a subnet, and the serial that they were decided from."""

    batch: Some
    buffer: FractionText
    top: Count
    exhausted: bool
    starved: bool
    step: Annotated[str, Meta(max_length=LONGEST_STEP)]
    reason: Annotated[str, Meta(max_length=LONGEST_REASON)]
    serial: Annotated[int, Meta(ge=0, lt=LARGEST_NUMBER)]


class SeenBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The highest version of a container in a subnet that a cluster has seen."""

    network: Name
    subnet: Name
    version: Version


class TermBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A controller that is to act for a cluster; the path has the cluster."""

    cluster_uid: Name
    holder: Name
    seen: Annotated[tuple[SeenBody, ...], Meta(max_length=MOST_SEEN)] = ()


class HeldAddressBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A secondary address that a node has."""

    name: Annotated[str, Meta(max_length=1_000)]
    ip: AddressText


class HeldBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a node has of a subnet; the path has its cluster and id."""

    network: Name
    subnet: Name
    cluster_uid: Name
    node: Name
    primary: AddressText
    version: Version
    request_uid: Name
    generation: Number
    recovery: Number
    addresses: Annotated[tuple[HeldAddressBody, ...], Meta(max_length=MOST_WANTED)] = ()
    gave_up: Annotated[int, Meta(ge=0, le=MOST_WANTED)] = 0
    is_foreign: bool = False


class ShownBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What living pods show to have of a subnet; the path has their cluster and their node's name."""

    network: Name
    subnet: Name
    cluster_uid: Name
    recovery: Number
    addresses: Annotated[tuple[AddressText, ...], Meta(max_length=MOST_WANTED)]


class Kept(Struct, frozen=True):
    """How many addresses went to quarantine for living pods."""

    addresses: int


class ReportBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The end of a cluster's report of what its nodes hold; the path has the cluster."""

    cluster_uid: Name
    recovery: Number


class NameBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The uid that a cluster's name is to be bound to."""

    uid: Name


class Forgotten(Struct, frozen=True):
    """How many containers of a forgotten cluster were deleted."""

    containers: int


class RefusalBody(Struct, frozen=True):
    """Why a request was refused: the name of the port's error, and one line for a person."""

    error: str
    message: str


STATUSES: dict[type[PodtideError], HTTPStatus] = {
    InvalidInput: HTTPStatus.BAD_REQUEST,
    NotAllowed: HTTPStatus.FORBIDDEN,
    NoSuchSubnet: HTTPStatus.NOT_FOUND,
    NoSuchContainer: HTTPStatus.NOT_FOUND,
    SubnetExists: HTTPStatus.CONFLICT,
    SubnetInUse: HTTPStatus.CONFLICT,
    SubnetFull: HTTPStatus.CONFLICT,
    StaleWish: HTTPStatus.CONFLICT,
    InForceConflict: HTTPStatus.CONFLICT,
    AnotherCluster: HTTPStatus.CONFLICT,
    AnotherTerm: HTTPStatus.CONFLICT,
    StoreRecovering: HTTPStatus.CONFLICT,
    AllocatorUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""Every error of the port, and the status it is answered with."""

_BY_NAME = {kind.__name__: kind for kind in STATUSES}


def body_of(stated: Struct, *in_path: str) -> dict[str, Any]:
    """The body that states one of the port's structs; fields that its path has are left out."""
    return {name: value for name, value in asdict(stated).items() if name not in in_path}


def stated_by(body: Struct, kind: type[T], **in_path: str) -> T:
    """The port's struct that a body states, together with what its path has."""
    return convert(asdict(body) | in_path, kind, from_attributes=True)


def kind_of(error: PodtideError) -> type[PodtideError] | None:
    """The error of the port that this is an instance of."""
    return next((kind for kind in type(error).__mro__ if kind in STATUSES), None)


def named(error: str) -> type[PodtideError] | None:
    """The error of the port with this name."""
    return _BY_NAME.get(error)
