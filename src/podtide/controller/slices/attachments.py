"""The NetworkAttachmentDefinitions of secondary networks: what each describes, and which objects belong to which network.

A definition is parsed once, when its event arrives. It describes a network, or has nothing to do with podtide, or
cannot be parsed. In the last case the network that it described before, and those that its text hints at, are kept:
their slices are not given up for lack of a definition.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct, structs

from podtide.controller.events import EventRecorder
from podtide.controller.slices.slice_pools import network_key
from podtide.core.ranges import IPNetwork, overlap
from podtide.networks.attachments import AttachedNetwork, Unreadable, read_attachment
from podtide.networks.hints import Hints, hints_in
from podtide.networks.network import Network, NetworkRange
from podtide.networks.ownership import classic_pool_names, node_slice_pool_names, pool_range
from podtide.resources.base import Key
from podtide.resources.names import Naming
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node_slice_pool import NodeSlicePool

Statement = tuple[str, tuple[tuple[IPNetwork, int | None], ...]]
"""What all definitions of one network must agree on."""


class ParsedAttachment(Struct, frozen=True, kw_only=True):
    """A NetworkAttachmentDefinition with the network it describes, or with the reason why it could not be parsed."""

    definition: NetworkAttachmentDefinition
    network: Network | None
    complaint: str = ""
    hints: Hints | None = None
    """For one that cannot be parsed: which networks its text may be about."""
    earlier: Network | None = None
    """For one that cannot be parsed: the network that it described before, if known."""

    def may_describe(self, names: frozenset[str], range_: IPNetwork | None) -> bool:
        """Whether it cannot be parsed and may be about a network with one of these names, or with this range."""
        if self.hints is None:
            return False
        described = self.earlier.ranges if self.earlier is not None else ()
        return self.hints.are_of(names, range_) or any(
            not names.isdisjoint({each.network_name, *node_slice_pool_names(each)} - {""})
            or (range_ is not None and overlap(each.addresses.network, range_) is not None)
            for each in described
        )

    @property
    def statement(self) -> Statement:
        """The ranges and slice sizes of the network, for comparison with other definitions."""
        network = self.network
        assert network is not None
        return network.ranges[0].network_name, tuple(
            (each.addresses.network, each.slice_size) for each in network.ranges
        )


def parsed(definition: NetworkAttachmentDefinition) -> ParsedAttachment:
    """The definition, parsed."""
    found = read_attachment(definition)
    is_unreadable = isinstance(found, Unreadable)
    return ParsedAttachment(
        definition=definition,
        network=found.network if isinstance(found, AttachedNetwork) else None,
        complaint=found.words if isinstance(found, Unreadable) else "",
        hints=hints_in(definition.spec.config) if is_unreadable else None,
    )


class AttachmentIndex:
    """All parsed definitions, indexed by definition, by network and by the names of the objects they ask for."""

    def __init__(self) -> None:
        self._by_definition: dict[Key, ParsedAttachment] = {}
        self._by_network: defaultdict[str, set[Key]] = defaultdict(set)
        self._names: _ObjectNames | None = None
        self._classic: dict[str, str] = {}
        """Names of IPPools for whole ranges, with the key of their network; names of former networks stay."""

    def put(self, attachment: ParsedAttachment) -> None:
        """Add a definition, or replace its former version."""
        key = attachment.definition.key
        before = self._by_definition.get(key)
        self.drop(key)
        if attachment.complaint and before is not None:
            attachment = structs.replace(attachment, earlier=before.network or before.earlier)
        self._by_definition[key] = attachment
        if attachment.network is not None:
            self._by_network[attachment.network.key].add(key)
            for name in classic_pool_names(attachment.network.ranges):
                self._classic[name] = attachment.network.key

    def drop(self, key: Key) -> None:
        """Remove a definition that was deleted."""
        self._names = None
        before = self._by_definition.pop(key, None)
        if before is not None and before.network is not None:
            network = before.network.key
            self._by_network[network].discard(key)
            if not self._by_network[network]:
                del self._by_network[network]

    def get(self, key: Key) -> ParsedAttachment | None:
        """The parsed definition of that key; None if there is none."""
        return self._by_definition.get(key)

    def networks(self) -> list[str]:
        """The keys of all networks that are described."""
        return list(self._by_network)

    def may_describe(self, names: Iterable[str], range_: IPNetwork | None) -> bool:
        """Whether a definition that cannot be parsed may be about a network with one of these names, or with this range."""
        known = frozenset(names)
        return any(each.may_describe(known, range_) for each in self._by_definition.values())

    def definitions_of(self, network: str) -> list[ParsedAttachment]:
        """The definitions that count for how the network is cut into slices, oldest first.

        One without slices counts too where its range overlaps a sliced one: else two lists would be kept of the same
        addresses.
        """
        found = [self._by_definition[key] for key in self._by_network.get(network, ())]
        sliced = [each.addresses.network for each in _ranges(found) if each.slicing]
        return sorted(
            (each for each in found if _overlaps(each, sliced)),
            key=lambda each: (each.definition.metadata.creation_timestamp or "", each.definition.key),
        )

    def network_of(self, node_slice_pool: str, listed: NodeSlicePool | None) -> str | None:
        """The key of the network that wants the NodeSlicePool of that name; None if none does.

        `listed` is the pool, if it exists. Where two networks want one name, the network that has it keeps it.
        """
        names = self._indexed()
        wanting = names.own.get(node_slice_pool, [])
        range_ = pool_range(listed) if listed else None
        if not wanting and range_ is not None:
            wanting = names.shipped.get((node_slice_pool, range_), [])
        if listed is not None and network_key(listed) in wanting:
            return network_key(listed)
        return wanting[0] if wanting else None

    def network_names(self) -> frozenset[str]:
        """The `network_name` of all networks that have one."""
        return self._indexed().networks

    def classic_network(self, pool: str) -> str | None:
        """The key of the network that uses or used the IPPool of this name for a whole range."""
        return self._classic.get(pool)

    def overlap_range(self, range_: IPNetwork) -> bool:
        """Whether the range overlaps that of any network that is described."""
        return any(overlap(each.addresses.network, range_) for each in _ranges(self._by_definition.values()))

    def unused_classic_pools(self, network: str) -> list[str]:
        """The names of IPPools for whole ranges that were the network's, and that no definition asks for any more."""
        used = self._indexed().classic
        return [name for name, key in self._classic.items() if key == network and name not in used]

    def _indexed(self) -> "_ObjectNames":
        if self._names is None:
            self._names = _index(self._by_definition.values())
        return self._names


class _ObjectNames(Struct, frozen=True, kw_only=True):
    """The names of all objects that the definitions ask for."""

    own: dict[str, list[str]]
    """The names podtide gives NodeSlicePools, with the keys of the networks that want them."""
    shipped: dict[tuple[str, IPNetwork], list[str]]
    """The names Whereabouts gives them, with their range: by name alone, two unnamed networks would be one."""
    classic: frozenset[str]
    """Names of IPPools for whole ranges."""
    networks: frozenset[str]
    """The `network_name` of every network that has one."""


def _index(attachments: Iterable[ParsedAttachment]) -> _ObjectNames:
    networks = [each.network for each in attachments if each.network is not None]
    own: defaultdict[str, list[str]] = defaultdict(list)
    shipped: defaultdict[tuple[str, IPNetwork], list[str]] = defaultdict(list)
    for network in sorted(networks, key=lambda network: network.key):
        for each in network.ranges:
            if each.slicing:
                own[each.node_slice_pool_name()].append(network.key)
                for name in node_slice_pool_names(each, Naming.WHEREABOUTS):
                    shipped[name, each.addresses.network].append(network.key)
    return _ObjectNames(
        own=own,
        shipped=shipped,
        classic=frozenset(
            classic_pool_names(each for network in networks for each in network.ranges if not each.slicing)
        ),
        networks=frozenset(
            each.network_name for network in networks for each in network.ranges if each.network_name
        ),
    )


def _ranges(attachments: Iterable[ParsedAttachment]) -> Iterator[NetworkRange]:
    for attachment in attachments:
        if attachment.network is not None:
            yield from attachment.network.ranges


def _overlaps(attachment: ParsedAttachment, networks: list[IPNetwork]) -> bool:
    return any(
        overlap(each.addresses.network, network) for each in _ranges([attachment]) for network in networks
    )


class DefinitionEvents:
    """Writes Events on definitions, each message once per definition: they have no status that could carry a condition."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events
        self._said: dict[Key, set[tuple[str, str]]] = {}

    async def warn(self, about: NetworkAttachmentDefinition, reason: str, message: str) -> None:
        """Write a warning Event, unless this definition (by uid) already got the same message."""
        said = self._said.setdefault(about.key, set())
        if (about.metadata.uid, message) not in said:
            said.add((about.metadata.uid, message))
            await self._events.record(about, reason, message, warning=True)

    def forget(self, key: Key) -> None:
        """Forget which messages were written on a definition that was deleted."""
        self._said.pop(key, None)
