"""What the page asks for beside the stream, as structs, and the errors that say why there is no answer."""

from http import HTTPStatus

from msgspec import Struct

from podtide.dashboard.records import DecisionRecord, NodeRecord


class PageRefusal(Exception):
    """A question that is not answered: the status, and one sentence for people."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


def not_there(sentence: str) -> PageRefusal:
    """What was asked for is not there, or not any more."""
    return PageRefusal(HTTPStatus.NOT_FOUND, sentence)


def bad_question(sentence: str) -> PageRefusal:
    """What was asked makes no sense."""
    return PageRefusal(HTTPStatus.BAD_REQUEST, sentence)


def away(sentence: str) -> PageRefusal:
    """A program that would know does not answer."""
    return PageRefusal(HTTPStatus.SERVICE_UNAVAILABLE, sentence)


class _Answer(Struct, frozen=True, kw_only=True, rename="camel"):
    """Written with all its fields."""


class MapAnswer(_Answer, frozen=True, kw_only=True):
    """Blocks of a subnet's map."""

    subnet: str
    blocks: int
    size: int
    first: int
    nodes: tuple[str, ...]
    pods: str
    cells: str
    owners: str
    bases: tuple[str, ...]


class UtilizationAnswer(_Answer, frozen=True, kw_only=True):
    """How many addresses of each block are in use."""

    subnet: str
    prefix: int
    blocks: int
    first: int
    used: tuple[int, ...]
    bases: tuple[str, ...]


class AddressDetails(_Answer, frozen=True, kw_only=True):
    """One address."""

    address: str
    subnet: str
    state: str
    node: str | None
    pod: str | None
    pod_uid: str | None
    since: str | None
    message: str


class AddressOfNode(_Answer, frozen=True, kw_only=True):
    """One address of a node."""

    address: str
    subnet: str
    state: str
    pod: str | None
    since: str | None


class PodOfNode(_Answer, frozen=True, kw_only=True):
    """One pod of a node."""

    name: str
    phase: str
    address: str | None
    message: str


class ConditionAnswer(_Answer, frozen=True, kw_only=True):
    """One condition of a node's NodeNetworkConfig."""

    type: str
    status: str
    reason: str
    message: str
    since: str


class NodeDetails(_Answer, frozen=True, kw_only=True):
    """What is known of a node beside its record."""

    addresses: tuple[AddressOfNode, ...]
    pods: tuple[PodOfNode, ...]
    conditions: tuple[ConditionAnswer, ...]
    decision: DecisionRecord | None


class PageNode(_Answer, frozen=True, kw_only=True):
    """A node's record and its details, which are written as one object."""

    record: NodeRecord
    details: NodeDetails


class WaitingPod(_Answer, frozen=True, kw_only=True):
    """A pod that waits for an address."""

    pod: str
    node: str | None
    since: str | None
    reason: str
    message: str


class WaitingAnswer(_Answer, frozen=True, kw_only=True):
    """The pods that wait."""

    pods: tuple[WaitingPod, ...]
    truncated: bool


class UsageAnswer(_Answer, frozen=True, kw_only=True):
    """How a subnet was used, column by column."""

    subnet: str
    step: int
    time: tuple[int, ...]
    capacity: tuple[int, ...]
    reserved: tuple[int, ...]
    demand: tuple[int | None, ...]
    need: tuple[int | None, ...]
    owed: tuple[int | None, ...]
    batch: tuple[int | None, ...]
    exhausted: tuple[float, ...]
    starved: tuple[float, ...]


class ReachedLevel(_Answer, frozen=True, kw_only=True):
    """When a level is reached."""

    what: str
    level: int
    date: str | None
    earliest: str | None
    latest: str | None
    message: str


class ForecastAnswer(_Answer, frozen=True, kw_only=True):
    """What is forecast for a subnet, for some days ahead."""

    subnet: str
    basis: str
    refused: str | None
    days: tuple[int, ...]
    middle: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    growth_per_day: float | None
    reaches: tuple[ReachedLevel, ...]


class NetworkFigures(_Answer, frozen=True, kw_only=True):
    """One secondary network."""

    name: str
    ranges: tuple[str, ...]
    slice_size: int | None
    slices: int | None
    slices_used: int
    nodes: int
    allocated: int
    reservations: int
    leaks: int | None
    message: str


class NetworksAnswer(_Answer, frozen=True, kw_only=True):
    """All of them."""

    networks: tuple[NetworkFigures, ...]


class NetworkNode(_Answer, frozen=True, kw_only=True):
    """A node's slice of a network, or a pool that nodes share."""

    node: str
    slice: str
    pool: str
    capacity: int
    allocated: int
    message: str


class NetworkReservation(_Answer, frozen=True, kw_only=True):
    """An address that is reserved across pools."""

    address: str
    pod: str
    node: str | None
    leaving: bool


class NetworkAnswer(_Answer, frozen=True, kw_only=True):
    """One network, with its nodes."""

    name: str
    nodes: tuple[NetworkNode, ...]
    reservations: tuple[NetworkReservation, ...]
    leaks: tuple[str, ...]
