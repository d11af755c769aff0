"""What has to change in a running cluster so that podtide takes over from Whereabouts, and what is wrong there today.

Very little changes, because podtide keeps the same books: pools and reservations are used as they are, under their own
names. What decides who answers a pod is the word in a NetworkAttachmentDefinition by which the runtime finds the
executable, the IPAM type. So a migration is that word, definition by definition, in any order; each is a small step
that can be the last one for now.

A definition is left alone where the change would mean more than it says: where podtide could not read it, where another
of its network says something else, and where the network would become a sliced one or cease to be one. What pools hold
would then be looked for in other pools.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podtide.cni.config_text import with_ipam_type
from podtide.cni.network_config import find_ipam
from podtide.core.audit.invariants import Violation
from podtide.core.audit.networks import audit_settled_networks
from podtide.networks.attachments import AttachedNetwork, Unreadable, read_attachment
from podtide.networks.audit_picture import draw_networks
from podtide.networks.network import Network
from podtide.networks.ownership import KnownNetworks, classic_pool_names, node_slice_pool_names
from podtide.resources.base import Key
from podtide.resources.ip_pool import IPPool
from podtide.resources.network_attachment import NetworkAttachmentDefinition
from podtide.resources.node_slice_pool import NodeSlicePool
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.pod import Pod

WHEREABOUTS = "whereabouts"
PODTIDE = "podtide"
_TWICE = 1
"""The invariant that no program can mend: an address or a slice is in two hands."""


class Mode(StrEnum):
    """How a network keeps its addresses."""

    CLASSIC = "classic"
    SLICED = "sliced"


class MigrationSnapshot(Struct, frozen=True, kw_only=True):
    """All that a migration looks at, read from a cluster: allocations before pods, so that none seems to be without."""

    attachments: Sequence[NetworkAttachmentDefinition]
    reservations: Sequence[OverlappingRangeIPReservation]
    pools: Sequence[IPPool]
    slice_pools: Sequence[NodeSlicePool]
    pods: Sequence[Pod]


class DefinitionChange(Struct, frozen=True):
    """A definition, and its configuration as it is to be."""

    attachment: NetworkAttachmentDefinition
    config: str

    @property
    def name(self) -> str:
        """The definition's namespace and name."""
        return str(self.attachment.key)


class LeftAlone(Struct, frozen=True, order=True):
    """A definition that somebody has to look at first, and why."""

    attachment: str
    words: str


class NetworkSummary(Struct, frozen=True, kw_only=True):
    """A network as it is found, which is how it stays."""

    network: str
    mode: Mode
    guarded: bool
    ranges: tuple[str, ...]
    attachments: tuple[str, ...]
    pools: tuple[str, ...]
    """Those that podtide takes over, under the names they have."""
    slice_pools: tuple[str, ...]
    allocations: int


class Migration(Struct, frozen=True, kw_only=True):
    """What is there, what is to be done, and what is wrong."""

    networks: tuple[NetworkSummary, ...]
    changes: tuple[DefinitionChange, ...]
    done: tuple[str, ...]
    """Definitions that are podtide's already."""
    left_alone: tuple[LeftAlone, ...]
    for_you: tuple[Violation, ...]
    """What is wrong today and only a person can mend."""
    mended_by_repair: tuple[Violation, ...]
    """What is wrong today and the controller's leak repair puts right."""
    ownerless_pools: tuple[str, ...]
    """Pools that belong to no network that a definition describes."""


def plan_migration(situation: MigrationSnapshot) -> Migration:
    """Look at everything, and decide."""
    definitions = {attachment.key: attachment for attachment in situation.attachments}
    attached, left_alone = [], []
    for attachment in situation.attachments:
        found = read_attachment(attachment)
        if isinstance(found, AttachedNetwork):
            attached.append(found)
        elif isinstance(found, Unreadable):
            left_alone.append(LeftAlone(str(found.attachment), found.words))
    held = {pool.metadata.name: len(pool.spec.allocations) for pool in situation.pools}
    objections = dict(_objections(attached, definitions, held))
    changes = []
    for item in attached:
        definition = definitions[item.attachment]
        config = with_ipam_type(definition.spec.config, WHEREABOUTS, PODTIDE)
        if item.attachment in objections:
            left_alone.append(LeftAlone(str(item.attachment), objections[item.attachment]))
        elif config != definition.spec.config:
            changes.append(DefinitionChange(definition, config))
    pending = {change.attachment.key for change in changes} | objections.keys()
    picture = draw_networks(
        situation.attachments,
        pools=situation.pools,
        reservations=situation.reservations,
        slice_pools=situation.slice_pools,
        pods=situation.pods,
    )
    violations = audit_settled_networks(picture)
    known = KnownNetworks(item.network for item in attached)
    return Migration(
        networks=tuple(_summaries(attached, known, situation)),
        changes=tuple(sorted(changes, key=lambda change: change.name)),
        done=tuple(sorted(str(item.attachment) for item in attached if item.attachment not in pending)),
        left_alone=tuple(sorted(left_alone)),
        for_you=tuple(each for each in violations if each.invariant == _TWICE),
        mended_by_repair=tuple(each for each in violations if each.invariant != _TWICE),
        ownerless_pools=tuple(
            sorted(pool.metadata.name for pool in situation.pools if known.of_pool(pool) is None)
        ),
    )


def confirmed(first: Migration, second: Migration) -> Migration:
    """The second, with only that wrong which was so in the first too: a cluster moves while it is read."""
    before = {(each.invariant, each.subject) for each in (*first.for_you, *first.mended_by_repair)}

    def lasting(violations: Iterable[Violation]) -> tuple[Violation, ...]:
        return tuple(each for each in violations if (each.invariant, each.subject) in before)

    return replace(second, for_you=lasting(second.for_you), mended_by_repair=lasting(second.mended_by_repair))


def _objections(
    attached: Iterable[AttachedNetwork],
    definitions: Mapping[Key, NetworkAttachmentDefinition],
    held: Mapping[str, int],
) -> Iterator[tuple[Key, str]]:
    """Why definitions that can be read must not be changed, given how many addresses each pool holds."""
    networks = defaultdict(list)
    for item in attached:
        networks[item.network.key].append(item)
    for key, items in networks.items():
        first = items[0]
        for item in items:
            if _statement(item.network) != _statement(first.network):
                yield first.attachment, _disagreement(key, first, item)
                yield item.attachment, _disagreement(key, item, first)
    for item in attached:
        today = _mode_in_whereabouts(definitions[item.attachment].spec.config)
        if item.config.type == WHEREABOUTS and today is not mode_of(item.network):
            yield item.attachment, _change_of_mode(today)
        sliced = [each for each in item.network.ranges if each.slice_size is not None]
        for name in classic_pool_names(sliced):
            if count := held.get(name, 0):
                yield item.attachment, _left_from_classic(name, count)


def _statement(network: Network) -> object:
    """What all definitions of a network must have in common."""
    return network.guarded, [(item.addresses.network, item.slice_size) for item in network.ranges]


def _disagreement(network: str, one: AttachedNetwork, other: AttachedNetwork) -> str:
    return (
        f"network {network} is described differently by {other.attachment}: let both have the same ranges, slice sizes "
        f"and enable_overlapping_ranges, or give {one.attachment} another network_name"
    )


def _mode_in_whereabouts(config: str) -> Mode:
    """Whereabouts goes by the one key, and knows neither fast_ipam nor a slice size per range."""
    return Mode.SLICED if find_ipam(config).ipam.node_slice_size else Mode.CLASSIC


def _change_of_mode(today: Mode) -> str:
    if today is Mode.CLASSIC:
        return (
            "the network is classic today and podtide would cut it into slices: "
            "take node_slice_size out of ipRanges, or set fast_ipam to false"
        )
    return (
        "the network is sliced today and podtide would use one pool for all nodes: "
        "take fast_ipam out, or drain the network and take node_slice_size out"
    )


def _left_from_classic(pool: str, count: int) -> str:
    return (
        f"pool {pool} still holds {count} of its addresses from when the network was classic: drain those pods first, "
        "or take node_slice_size out"
    )


def mode_of(network: Network) -> Mode:
    """How podtide runs a network."""
    return Mode.SLICED if any(item.slice_size is not None for item in network.ranges) else Mode.CLASSIC


def _summaries(
    attached: Iterable[AttachedNetwork], known: KnownNetworks, situation: MigrationSnapshot
) -> Iterator[NetworkSummary]:
    pools = defaultdict(list)
    for pool in situation.pools:
        belonging = known.of_pool(pool)
        if belonging is not None:
            pools[belonging.network].append(pool)
    slice_pools = {pool.metadata.name for pool in situation.slice_pools}
    networks: dict[str, list[AttachedNetwork]] = defaultdict(list)
    for item in attached:
        networks[item.network.key].append(item)
    for key, items in sorted(networks.items()):
        network = items[0].network
        own = pools.get(key, [])
        named = {name for item in network.ranges if item.slice_size for name in node_slice_pool_names(item)}
        yield NetworkSummary(
            network=key,
            mode=mode_of(network),
            guarded=network.guarded,
            ranges=tuple(str(item.addresses) for item in network.ranges),
            attachments=tuple(sorted(str(item.attachment) for item in items)),
            pools=tuple(sorted(pool.metadata.name for pool in own)),
            slice_pools=tuple(sorted(named & slice_pools)),
            allocations=sum(len(pool.spec.allocations) for pool in own),
        )
