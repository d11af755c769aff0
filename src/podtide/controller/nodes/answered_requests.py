"""Which wishes were answered, so that the same wish is not sent twice, and when a claim has to be renewed.

A wish is made from one version of the NodeNetworkConfig, the node's places and its own addresses. It is sent again when
any of these changed; and that of a node that is owed addresses, in time before its claim expires.
"""

from math import inf

from msgspec import Struct, structs

from podtide.controller.nodes.subnet_choice import ContainerPlace
from podtide.core.machine_identity import UNKNOWN_MACHINE, MachineIdentity
from podtide.runtime.clock import Clock

RENEW_SECONDS = 200.0
"""A claim expires at the allocator when no wish renewed it for ten minutes: this leaves room for two lost calls."""


class RequestBasis(Struct, frozen=True):
    """What a wish is made from, beside the version of the NodeNetworkConfig."""

    uid: str
    """The uid of the NodeNetworkConfig."""
    places: tuple[ContainerPlace, ...]
    own_addresses: tuple[str, ...]
    watch: int
    """The number of the watch of NodeNetworkConfigs, counted from the start of the term."""
    machine: MachineIdentity = UNKNOWN_MACHINE
    waiting: str = ""
    """Which addresses of former Nodes of its name are in quarantine, as text."""


class _AnsweredRequest(Struct, frozen=True):
    basis: RequestBasis
    versions: frozenset[str]
    """The version read, which the cache may still show for a moment, and the one written with the answer."""
    renew_at: float


class AnsweredRequests:
    """Remembers the last answered wish of each node."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answered: dict[str, _AnsweredRequest] = {}

    def is_answered(self, node: str, basis: RequestBasis, version: str) -> bool:
        """Whether the node's wish was answered already and needs no renewal."""
        last = self._answered.get(node)
        return (
            last is not None
            and last.basis == basis
            and version in last.versions
            and self._clock.monotonic() < last.renew_at
        )

    def renew_in_seconds(self, node: str) -> float | None:
        """In how many seconds the node's claim must be renewed; None for a node that is owed nothing."""
        last = self._answered.get(node)
        return None if last is None or last.renew_at == inf else last.renew_at - self._clock.monotonic()

    def note(self, node: str, basis: RequestBasis, versions: frozenset[str], *, owed: bool) -> None:
        """Remember that the wish was answered and that the status shows the answer."""
        renew_at = self._clock.monotonic() + RENEW_SECONDS if owed else inf
        self._answered[node] = _AnsweredRequest(basis, versions, renew_at)

    def note_version(self, node: str, version: str) -> None:
        """Remember a further version that shows the same answer."""
        last = self._answered[node]
        self._answered[node] = structs.replace(last, versions=last.versions | {version})

    def forget(self, node: str) -> None:
        """Forget a node that was deleted, or whose wish is about to be sent again."""
        self._answered.pop(node, None)
