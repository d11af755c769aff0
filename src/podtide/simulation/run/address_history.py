"""The history of one address in a trace: granted, assigned to pods, taken back, named for release, gone.

A failure may also be about a slice of a secondary network: then the history is that of the slice and all its addresses.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice

from podtide.core.errors import InvalidInput
from podtide.core.ranges import IPNetwork, overlap, parse_network
from podtide.networks.audit_picture import held_addresses
from podtide.networks.confirmation import is_inert
from podtide.networks.ownership import may_be_reservation_of, pool_range
from podtide.resources.ip_pool import IPPool
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.simulation.checks.network_book import draw_slices
from podtide.simulation.run.settling import is_leaders_lease
from podtide.simulation.trace import AllocatorCall, ClusterWrite, Entry, PluginCall, PoolMove, Trace, Trouble

_KINDS = {kind.api.kind for kind in (IPPool, OverlappingRangeIPReservation, NodeSlicePool)}


class ObjectHistory:
    """The history of a subject: a slice, or an address as the network that contains only it."""

    def __init__(self, subject: IPNetwork) -> None:
        self._subject = subject
        self._is_address = subject.num_addresses == 1
        self._said: dict[tuple[str, str], frozenset[str]] = {}
        """What each object contained of the subject when it was last written, by kind and name."""

    def words(self, entry: Entry | PoolMove) -> Iterator[str]:
        """The lines about the subject that follow from an entry."""
        if not isinstance(entry, ClusterWrite) or entry.kind not in _KINDS:
            return
        place = entry.kind, entry.name
        before, now = self._said.get(place, frozenset()), frozenset(self._says(entry))
        self._said[place] = now
        yield from (f"{entry}: no longer {fact}" for fact in sorted(before - now))
        yield from (f"{entry}: {fact}" for fact in sorted(now - before))

    def _says(self, entry: ClusterWrite) -> Iterator[str]:
        item = entry.item
        if isinstance(item, IPPool):
            yield from self._of_pool(item)
        elif isinstance(item, OverlappingRangeIPReservation):
            yield from self._of_reservation(item)
        elif isinstance(item, NodeSlicePool):
            for view in draw_slices(item):
                if overlap(view.slice, self._subject):
                    yield f"slice {view.slice} of {view.node}"

    def _of_pool(self, pool: IPPool) -> Iterator[str]:
        range_ = pool_range(pool)
        if range_ is None or not overlap(range_, self._subject):
            return
        if not self._is_address:
            yield f"a pool of {range_}{', inert' if is_inert(pool) else ''}"
        elif (holder := held_addresses(pool, range_).get(self._subject.network_address)) is not None:
            earlier = "".join(f", earlier {sandbox[:12]}" for sandbox in holder.earlier)
            yield f"held by {holder.podref} {holder.ifname} (sandbox {holder.id[:12]}{earlier})"

    def _of_reservation(self, reservation: OverlappingRangeIPReservation) -> Iterator[str]:
        name, spec = reservation.metadata.name, reservation.spec
        if self._is_address and may_be_reservation_of(name, self._subject.network_address):
            yield f"reserved for {spec.podref} {spec.ifname} (sandbox {spec.container_id[:12]})"


_CANDIDATE = re.compile(
    r"(?<![\w.:/-])(?:\d+(?:\.\d+){3}|[\da-fA-F]*:[\da-fA-F:]*:[\da-fA-F]*)(?:/\d+)?(?![\w-])"
)
_LAST_STATES = 60
_LAST_ENTRIES = 30


def subject_of(words: str) -> IPNetwork | None:
    """The first address or slice in a sentence. An address is returned as the network that contains only it."""
    for found in _CANDIDATE.findall(words):
        for text in (found, found.removesuffix(":")):  # the colon may be the sentence's own
            with suppress(InvalidInput):
                return parse_network(text if "/" in text else f"{text}/{128 if ':' in text else 32}")
    return None


def last_states(subject: IPNetwork | None, trace: Trace) -> tuple[str, ...]:
    """The last entries about the subject, the newest last; none without a subject."""
    return tuple(_tell(subject, trace.with_moves()))[-_LAST_STATES:] if subject is not None else ()


def last_entries(trace: Trace) -> tuple[str, ...]:
    """The last entries about anything, the newest last. The leader's Lease is left out: at rest there is nothing else."""
    newest_first = (entry for entry in reversed(trace.entries) if not is_leaders_lease(entry))
    return tuple(_at(entry, str(entry)) for entry in islice(newest_first, _LAST_ENTRIES))[::-1]


def _tell(subject: IPNetwork, entries: Iterable[Entry | PoolMove]) -> Iterator[str]:
    histories = _PrimaryHistory(str(subject.network_address)), ObjectHistory(subject)
    for entry in entries:
        for history in histories:
            yield from (_at(entry, words) for words in history.words(entry))


def _at(entry: Entry | PoolMove, words: str) -> str:
    return f"{entry.at:.3f} {words}"


class _PrimaryHistory:
    """The history of an address in calls of the plugin and the allocator, the nodes' pools and their NodeNetworkConfigs."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._holders: set[tuple[str, str]] = set()
        """Pods that had it, each with its network."""
        self._containers: set[str] = set()
        """The containers that have it, by the allocator's answers."""
        self._granted: dict[str, str] = {}
        """Its name in each node's NodeNetworkConfig."""
        self._named: set[tuple[str, str]] = set()

    def words(self, entry: Entry | PoolMove) -> Iterator[str]:
        """The lines about the address that follow from an entry."""
        if isinstance(entry, PoolMove):
            if entry.ip == self._address:
                yield str(entry)
        elif isinstance(entry, PluginCall):
            yield from self._of_call(entry)
        elif isinstance(entry, Trouble):
            if any(pod in entry.words.split() for pod, _network in self._holders):
                yield str(entry)
        elif isinstance(entry, AllocatorCall):
            yield from self._of_allocator(entry)
        elif isinstance(entry, ClusterWrite) and isinstance(entry.item, NodeNetworkConfig):
            yield from self._of_config(entry, entry.item)

    def _of_call(self, entry: PluginCall) -> Iterator[str]:
        """All calls for a pod that ever had it: a call for one of its sandboxes can affect the address of another."""
        holder = entry.pod, entry.network
        if entry.ok and self._address in entry.words.split(", "):
            self._holders.add(holder)
        if holder in self._holders:
            yield f"{entry} (sandbox {entry.sandbox[:12]})"

    def _of_allocator(self, entry: AllocatorCall) -> Iterator[str]:
        container = entry.answer.id if entry.answer else entry.subject
        has_it = entry.answer is not None and any(each.ip == self._address for each in entry.answer.addresses)
        if has_it != (container in self._containers):
            (self._containers.add if has_it else self._containers.discard)(container)
            yield f"{entry}: the allocator {'has granted it' if has_it else 'has it back'}"

    def _of_config(self, entry: ClusterWrite, config: NodeNetworkConfig) -> Iterator[str]:
        listed = {
            granted.ip: (granted.name, container.version)
            for container in config.status.network_containers
            for granted in container.ip_assignments
        }
        name, version = listed.get(self._address, ("", 0))
        before = self._granted.get(entry.name, "")
        if name != before:
            self._granted[entry.name] = name
            yield (
                f"{entry}: grants it as {name} (version {version})"
                if name
                else f"{entry}: no longer grants {before}"
            )
        known = name or before
        is_named = known in config.spec.ips_not_in_use
        if is_named != ((entry.name, known) in self._named):
            (self._named.add if is_named else self._named.discard)((entry.name, known))
            yield f"{entry}: {known} is {'named' if is_named else 'no longer named'} for release"
