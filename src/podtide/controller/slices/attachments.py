"""What NetworkAttachmentDefinitions say of secondary networks, and which objects are whose by that.

A definition is read when it is heard of, once. It describes a network, or it is none of podtide's business, or it cannot
be read. Then what it described before, and what its text has hints of, is not given up for lack of a definition.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct, structs

from podtide.controller.slices.slice_pool_object import network_key, range_of
from podtide.core.ranges import IPNetwork, overlap
from podtide.networks.attachments import AttachedNetwork, Unreadable, read_attachment
from podtide.networks.hints import Hints, hints_in
from podtide.networks.network import Network, NetworkRange
from podtide.networks.ownership import classic_pool_names, node_slice_pool_names
from podtide.resources.base import Key
from podtide.resources.names import Naming
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node_slice_pool import NodeSlicePool

Statement = tuple[str, tuple[tuple[IPNetwork, int | None], ...]]
"""What definitions of one network must agree on."""


class ParsedAttachment(Struct, frozen=True, kw_only=True):
    """A NetworkAttachmentDefinition and the network it describes, or what is wrong with it."""

    definition: NetworkAttachmentDefinition
    network: Network | None
    complaint: str = ""
    hints: Hints | None = None
    """Of one that cannot be read: what it may be about."""
    earlier: Network | None = None
    """Of one that cannot be read: the network that it described before, as far as is known."""

    def may_describe(self, names: frozenset[str], range_: IPNetwork | None) -> bool:
        """Whether it cannot be read, and may be of a network with these names, or with this range."""
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
        """Ranges and slice sizes of the network, for comparison."""
        network = self.network
        assert network is not None
        return network.ranges[0].network_name, tuple(
            (each.addresses.network, each.slice_size) for each in network.ranges
        )


def parsed(definition: NetworkAttachmentDefinition) -> ParsedAttachment:
    """What the definition says."""
    found = read_attachment(definition)
    is_unreadable = isinstance(found, Unreadable)
    return ParsedAttachment(
        definition=definition,
        network=found.network if isinstance(found, AttachedNetwork) else None,
        complaint=found.words if isinstance(found, Unreadable) else "",
        hints=hints_in(definition.spec.config) if is_unreadable else None,
    )


class AttachmentIndex:
    """All that is known of NetworkAttachmentDefinitions."""

    def __init__(self) -> None:
        self._by_definition: dict[Key, ParsedAttachment] = {}
        self._by_network: defaultdict[str, set[Key]] = defaultdict(set)
        self._names: _ObjectNames | None = None
        self._classic: dict[str, str] = {}
        """IPPools for whole ranges, with the network's key: also those of networks that were."""

    def put(self, attachment: ParsedAttachment) -> None:
        """The definition now says this."""
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
        """There is no such definition any more."""
        self._names = None
        before = self._by_definition.pop(key, None)
        if before is not None and before.network is not None:
            network = before.network.key
            self._by_network[network].discard(key)
            if not self._by_network[network]:
                del self._by_network[network]

    def get(self, key: Key) -> ParsedAttachment | None:
        """What a definition says."""
        return self._by_definition.get(key)

    def networks(self) -> list[str]:
        """The keys of all networks that are described."""
        return list(self._by_network)

    def may_want(self, names: Iterable[str], range_: IPNetwork | None) -> bool:
        """Whether a definition that cannot be read may be of a network with these names, or with this range."""
        known = frozenset(names)
        return any(each.may_describe(known, range_) for each in self._by_definition.values())

    def stating(self, network: str) -> list[ParsedAttachment]:
        """The definitions that have a say in how the network is cut into slices, oldest first.

        A classic one has, where its range overlaps a sliced one: two books would be kept of the same addresses.
        """
        found = [self._by_definition[key] for key in self._by_network.get(network, ())]
        sliced = [each.addresses.network for each in _ranges(found) if each.slicing]
        return sorted(
            (each for each in found if _overlaps(each, sliced)),
            key=lambda each: (each.definition.metadata.creation_timestamp or "", each.definition.key),
        )

    def network_of(self, node_slice_pool: str, listed: NodeSlicePool | None) -> str | None:
        """The network that wants the NodeSlicePool of that name, which may be there already; None when none does.

        Where two want one name, who has it keeps it.
        """
        names = self._indexed()
        wanting = names.own.get(node_slice_pool, [])
        range_ = range_of(listed) if listed else None
        if not wanting and range_ is not None:
            wanting = names.shipped.get((node_slice_pool, range_), [])
        if listed is not None and network_key(listed) in wanting:
            return network_key(listed)
        return wanting[0] if wanting else None

    def network_names(self) -> frozenset[str]:
        """The `network_name` of all networks that have one."""
        return self._indexed().networks

    def classic_network(self, pool: str) -> str | None:
        """The network that an IPPool of this name, for a whole range, is or was of."""
        return self._classic.get(pool)

    def have_to_do_with(self, range_: IPNetwork) -> bool:
        """Whether any network that is described overlaps the range."""
        return any(overlap(each.addresses.network, range_) for each in _ranges(self._by_definition.values()))

    def left_classic(self, network: str) -> list[str]:
        """The names of IPPools for whole ranges that were the network's, and that no definition asks for any more."""
        used = self._indexed().classic
        return [name for name, key in self._classic.items() if key == network and name not in used]

    def _indexed(self) -> "_ObjectNames":
        if self._names is None:
            self._names = _index(self._by_definition.values())
        return self._names


class _ObjectNames(Struct, frozen=True, kw_only=True):
    """What objects of networks are called."""

    own: dict[str, list[str]]
    """The names podtide gives NodeSlicePools, with the keys of the networks that want them."""
    shipped: dict[tuple[str, IPNetwork], list[str]]
    """The names Whereabouts gives them, with their range: by name alone, two unnamed networks would be one."""
    classic: frozenset[str]
    """IPPools for whole ranges."""
    networks: frozenset[str]
    """The networks' own."""


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
