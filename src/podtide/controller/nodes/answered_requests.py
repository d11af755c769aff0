"""Which wishes were answered, so that the same is not asked twice, and when one has to be asked again all the same.

A wish is made from the NodeNetworkConfig in one version, the node's places and its own addresses. It is asked again
when any of these changed; and that of a node that is owed, in time before its claim lapses.
"""

from math import inf

from msgspec import Struct, structs

from podtide.controller.nodes.subnet_choice import ContainerPlace
from podtide.core.machine_identity import UNKNOWN_MACHINE, MachineIdentity
from podtide.runtime.clock import Clock

RENEW_SECONDS = 200.0
"""A claim lapses at the allocator when no wish renewed it for ten minutes: this leaves room for two lost ones."""


class RequestBasis(Struct, frozen=True):
    """What a wish is made from, beside the version of the NodeNetworkConfig."""

    uid: str
    """The NodeNetworkConfig's."""
    places: tuple[ContainerPlace, ...]
    own_addresses: tuple[str, ...]
    watch: int
    """Which watch of NodeNetworkConfigs it was, in order."""
    machine: MachineIdentity = UNKNOWN_MACHINE
    waiting: str = ""
    """What former Nodes of its name left and waits, in words."""


class _AnsweredRequest(Struct, frozen=True):
    basis: RequestBasis
    versions: frozenset[str]
    """The one read, which our copy may still show for a moment, and the one written, which shows the answer."""
    renew_at: float


class AnsweredRequests:
    """What is remembered of the last answered wish of each node."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answered: dict[str, _AnsweredRequest] = {}

    def is_answered(self, node: str, basis: RequestBasis, version: str) -> bool:
        """Whether there is nothing to ask for."""
        last = self._answered.get(node)
        return (
            last is not None
            and last.basis == basis
            and version in last.versions
            and self._clock.monotonic() < last.renew_at
        )

    def renew_in_seconds(self, node: str) -> float | None:
        """How long until the node's claim must be renewed; None for one that is owed nothing."""
        last = self._answered.get(node)
        return None if last is None or last.renew_at == inf else last.renew_at - self._clock.monotonic()

    def note(self, node: str, basis: RequestBasis, versions: frozenset[str], *, owed: bool) -> None:
        """The wish was answered, and the status shows it."""
        renew_at = self._clock.monotonic() + RENEW_SECONDS if owed else inf
        self._answered[node] = _AnsweredRequest(basis, versions, renew_at)

    def note_version(self, node: str, version: str) -> None:
        """A version that shows the same answer was written."""
        last = self._answered[node]
        self._answered[node] = structs.replace(last, versions=last.versions | {version})

    def forget(self, node: str) -> None:
        """The node is gone, or its wish is about to be made again."""
        self._answered.pop(node, None)
