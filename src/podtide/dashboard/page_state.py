"""All that the page shows live: records, the map, decisions and health, kept up to date object by object. No I/O.

A change of an object costs what that object is worth: its own addresses and counts. What it adds to its subnet is taken
out and put in as a difference, and the subnet's record is made anew once for all changes that are published together.
Nothing here walks through all nodes, except what a client is sent when it connects.
"""

from collections import Counter
from collections.abc import Iterable
from enum import Enum

import msgspec
from msgspec import Struct

from podtide.allocator.quarantine import Quarantined
from podtide.allocator.subnets import Subnet
from podtide.core.subnet.exhaustion import Thresholds
from podtide.dashboard.address_map import BLOCK_BITS, CellState, SubnetMap
from podtide.dashboard.change_log import ChangeLog, Key
from podtide.dashboard.cluster_health import ClusterHealth
from podtide.dashboard.decision_notes import DecisionNotes
from podtide.dashboard.decisions import (
    DecisionDraft,
    config_decisions,
    node_subject,
    subnet_decisions,
    subnet_subject,
)
from podtide.dashboard.holdings import NOTHING, HeldAddresses, address_number, holding_of, node_record
from podtide.dashboard.records import (
    MOST_DECISIONS,
    DecisionRecord,
    Health,
    NodeRecord,
    PageChange,
    PageCluster,
    PageSnapshot,
    PartHealth,
    SubnetRecord,
)
from podtide.dashboard.subnet_sources import SubnetSources, SubnetSums, subnet_record, thresholds_of
from podtide.resources.cluster_subnet import ClusterSubnet
from podtide.resources.cluster_subnet_state import ClusterSubnetState
from podtide.resources.lease import Lease
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.timestamps import to_time
from podtide.runtime.clock import Clock

_MOST_CHANGE_TIMES = 1 << 16
"""Of so many addresses it is known when they last changed."""
_SPARE_OWNERS = 1_000
_ENCODER = msgspec.json.Encoder()


class _Kind(Enum):
    NODE = "node"
    SUBNET = "subnet"
    BLOCK = "block"
    HEALTH = "health"


_HEALTH: Key = (_Kind.HEALTH, "", 0)


class EncodedEvent(Struct, frozen=True):
    """One event of the stream."""

    sequence: int
    kind: str
    """`snapshot` or `change`."""
    data: bytes


class PageState:
    """The state. Its methods are called as objects change; `publish` gathers what they changed."""

    def __init__(self, cluster: PageCluster, clock: Clock, *, thresholds: Thresholds | None = None) -> None:
        """`thresholds` are those of the controller's settings, where these are known."""
        self.cluster = cluster
        self.nodes: dict[str, NodeRecord] = {}
        self.subnets: dict[str, SubnetRecord] = {}
        self.maps: dict[str, SubnetMap] = {}
        self.stated_pods = 0
        """The sum of stated demand, over nodes."""
        self._clock = clock
        self._default_thresholds = thresholds
        self._log = ChangeLog[DecisionRecord](most_notes=MOST_DECISIONS)
        self._node_objects: dict[str, Node] = {}
        self._configs: dict[str, NodeNetworkConfig] = {}
        self._held: dict[str, HeldAddresses] = {}
        self._sources: dict[str, SubnetSources] = {}
        self._quarantined: dict[tuple[str, int], str] = {}
        """By subnet and address, the node that left it."""
        self._owner_numbers: dict[str, int] = {}
        self._owner_names: dict[int, str] = {}
        self._last_owner = 0
        self._changed_at: dict[tuple[str, int], float] = {}
        self._dirty: set[str] = set()
        """Subnets whose record is to be made anew."""
        self._health = ClusterHealth()
        self._decisions = DecisionNotes(clock, self._log.note)
        self._last_encoded: EncodedEvent | None = None
        self._encoded_since = -1

    # Objects

    def note_node(self, old: Node | None, new: Node | None, *, is_first: bool = False) -> None:
        """A Node is there, another than before, or gone."""
        name = _name(old, new)
        if new is not None:
            is_new = name not in self._node_objects
            self._node_objects[name] = new
            if is_new and not is_first:
                self._decisions.note(DecisionDraft("node", node_subject(name), f"node {name} has joined"))
        else:
            self._node_objects.pop(name, None)
            if old is not None:
                self._decisions.note(DecisionDraft("node", node_subject(name), f"node {name} is gone"))
        self._renew_node(name)

    def note_config(
        self, old: NodeNetworkConfig | None, new: NodeNetworkConfig | None, *, is_first: bool = False
    ) -> None:
        """A NodeNetworkConfig is there, another than before, or gone. `is_first` is what was there at the start."""
        name = _name(old, new)
        if new is not None:
            self._configs[name] = new
        else:
            self._configs.pop(name, None)
        holding = holding_of(new)
        self._replace_holding(name, holding, is_first=is_first)
        if new is not None and holding.shares:
            self._health.agents.note(
                name,
                (share.subnet for share in holding.shares),
                holding.batch,
                has_asked=new.spec.requested_ip_count > 0,
                now=self._clock.wall(),
            )
        else:
            self._health.agents.forget(name)
        self._health.is_due = True
        if old is not None and new is not None:
            for draft in config_decisions(old, new):
                self._decisions.note(draft)
        self._renew_node(name)

    def note_subnet(self, old: ClusterSubnet | None, new: ClusterSubnet | None) -> None:
        """A ClusterSubnet is there, another than before, or gone."""
        name = _name(old, new)
        source = self._source(name)
        source.subnet = new
        scaler = new.status.scaler if new else None
        self._health.agents.put_in_force(name, scaler.batch if scaler else None, self._clock.wall())
        if old is not None and new is not None:
            for draft in subnet_decisions(old, new, thresholds_of(source, self._default_thresholds)):
                self._decisions.note(draft)
        self._health.is_due = True
        self._dirty.add(name)

    def note_subnet_state(self, old: ClusterSubnetState | None, new: ClusterSubnetState | None) -> None:
        """A ClusterSubnetState is there, another than before, or gone."""
        name = _name(old, new)
        source = self._source(name)
        before, after = source.is_state_exhausted, bool(new and new.status and new.status.exhausted)
        source.state = new
        if source.subnet is None and old is not None and before != after:
            words = "is exhausted" if after else "is not exhausted any more"
            self._decisions.note(DecisionDraft("exhausted", subnet_subject(name), f"subnet {name} {words}"))
        self._dirty.add(name)

    def note_lease(self, old: Lease | None, new: Lease | None) -> None:
        """The leader's Lease."""
        self._health.note_lease(new)
        if old is not None and new is not None:
            before, after = old.spec.holder_identity, new.spec.holder_identity
            if before != after:
                words = f"{after} leads" if after else f"{before} gave up the lead"
                self._decisions.note(DecisionDraft("leader", "", words))

    def note_lease_read(self) -> None:
        """The Lease was looked for, whether it is there or not."""
        self._health.note_lease_read()

    # Programs that were asked

    def note_allocator(self, subnets: Iterable[Subnet], health: PartHealth) -> None:
        """What the allocator answered, or that it did not: then its numbers count no more."""
        by_name: dict[str, list[Subnet]] = {}
        for subnet in subnets:
            by_name.setdefault(subnet.name, []).append(subnet)
        for name, source in self._sources.items():
            there = tuple(by_name.get(name, ()))
            if there != source.at_allocator:
                source.at_allocator = there
                self._dirty.add(name)
        self._health.note_allocator(health)

    def note_quarantine(self, quarantined: Iterable[Quarantined]) -> None:
        """Everything that is in quarantine now."""
        now = {
            (each.subnet, number): each.node
            for each in quarantined
            if each.network == self.network_of(each.subnet)
            for address in each.addresses
            if (number := address_number(address)) is not None
        }
        for place in self._quarantined.keys() - now.keys():
            there = self.maps.get(place[0])
            if there is not None and there.cell(place[1]).state is CellState.QUARANTINED:
                self._remove_address(place, self._quarantined[place])
        for place, node in now.items():
            if self._map(place[0]).cell(place[1]).state is not CellState.QUARANTINED:
                self._put_address(place, CellState.QUARANTINED, node)
        self._quarantined = now

    def note_pods(self, addresses: Iterable[int]) -> bool:
        """Other pods than before have these addresses, or none: maps that show pods differ there."""
        is_any = False
        for address in addresses:
            for name, there in self.maps.items():
                if there.has(address):
                    self._log.mark((_Kind.BLOCK, name, address >> BLOCK_BITS))
                    is_any = True
        return is_any

    def note_api(self, health: PartHealth) -> None:
        """Whether the API server answers."""
        self._health.note_api(health)

    # What is asked of it

    @property
    def health(self) -> Health:
        """Whether the programs do their part, as it is published."""
        return self._health.shown

    def owner_name(self, number: int) -> str:
        """The node behind a number of the map."""
        return self._owner_names.get(number, "")

    def changed_at(self, subnet: str, address: int) -> str | None:
        """When an address last changed its state or node; None if that was before the start, or long ago."""
        moment = self._changed_at.get((subnet, address))
        return None if moment is None else to_time(moment)

    def config(self, node: str) -> NodeNetworkConfig | None:
        """The NodeNetworkConfig of a node."""
        return self._configs.get(node)

    def node(self, name: str) -> Node | None:
        """The Node."""
        return self._node_objects.get(name)

    def network_of(self, subnet: str) -> str | None:
        """The allocator's network of a subnet; None where it has none of the name, or several and no node tells which."""
        source = self._sources.get(subnet)
        there = source.asked() if source else None
        return there.network if there else None

    def thresholds(self, subnet: str) -> Thresholds | None:
        """The thresholds t and T of a subnet."""
        source = self._sources.get(subnet)
        return thresholds_of(source, self._default_thresholds) if source else None

    def is_due(self) -> bool:
        """Whether there is something to publish."""
        return self._log.is_open or bool(self._dirty) or self._health.is_due

    @property
    def sequence(self) -> int:
        """The number of the last publication."""
        return self._log.sequence

    def publish(self) -> bool:
        """Give what changed since the last time a number. Returns whether anything did."""
        for name in sorted(self._dirty):
            self._renew_subnet(name)
        self._dirty.clear()
        if self._health.is_due and self._health.renew(self._clock.wall()):
            self._log.record(_HEALTH)
        self._decisions.end_round()
        return self._log.publish()

    def renew_health(self) -> None:
        """Look anew at what changes by time alone: a Lease that is not renewed, an agent that does not answer."""
        self._health.is_due = True

    def snapshot(self) -> PageSnapshot:
        """Everything, as it is published."""
        self.publish()
        return PageSnapshot(
            cluster=self.cluster,
            subnets=tuple(self.subnets.values()),
            nodes=tuple(self.nodes.values()),
            decisions=self._log.notes(),
            health=self.health,
        )

    def change_since(self, sequence: int) -> PageChange | None:
        """What differs from an earlier number; None where only a snapshot can tell."""
        missed = self._log.since(sequence)
        if missed is None:
            return None
        nodes, subnets, blocks, health = [], [], dict[str, list[int]](), None
        gone_nodes, gone_subnets = [], []
        for kind, name, number in missed.keys:
            if kind is _Kind.NODE and name in self.nodes:
                nodes.append(self.nodes[name])
            elif kind is _Kind.NODE:
                gone_nodes.append(name)
            elif kind is _Kind.SUBNET and name in self.subnets:
                subnets.append(self.subnets[name])
            elif kind is _Kind.SUBNET:
                gone_subnets.append(name)
            elif kind is _Kind.HEALTH:
                health = self.health
            elif (found := self.maps.get(name)) and (index := found.index_of(number)) is not None:
                blocks.setdefault(name, []).append(index)
        return PageChange(
            subnets=tuple(subnets),
            nodes=tuple(nodes),
            removed_subnets=tuple(gone_subnets),
            removed_nodes=tuple(gone_nodes),
            decisions=missed.notes,
            health=health,
            blocks={name: sorted(indexes) for name, indexes in blocks.items()},
        )

    def event_since(self, sequence: int | None) -> EncodedEvent | None:
        """The event that brings a client up to date; None if it is. Clients at the same number share the work."""
        if sequence == self._log.sequence:
            return None
        known = self._last_encoded
        if known is not None and (self._encoded_since, self._log.sequence) == (sequence, known.sequence):
            return known
        change = self.change_since(sequence) if sequence is not None else None
        if change is None:
            data = _ENCODER.encode(self.snapshot())
            return EncodedEvent(self._log.sequence, "snapshot", data)
        assert sequence is not None  # or there would be no change
        event = EncodedEvent(self._log.sequence, "change", _ENCODER.encode(change))
        self._last_encoded, self._encoded_since = event, sequence
        return event

    # Nodes

    def _renew_node(self, name: str) -> None:
        node, config = self._node_objects.get(name), self._configs.get(name)
        key: Key = (_Kind.NODE, name, 0)
        if node is None and config is None:
            if (gone := self.nodes.pop(name, None)) is not None:
                self.stated_pods -= gone.demand or 0
                self._log.mark(key)
                self._forget_owners()
            return
        record = node_record(name, node, config)
        before = self.nodes.get(name)
        if record != before:
            self.stated_pods += (record.demand or 0) - ((before.demand or 0) if before else 0)
            self.nodes[name] = record
            self._log.record(key)

    def _replace_holding(self, name: str, new: HeldAddresses, *, is_first: bool) -> None:
        old = self._held.get(name, NOTHING)
        for share in old.shares:
            self._source(share.subnet).sums.add(share, -1)
            self._dirty.add(share.subnet)
        for share in new.shares:
            self._source(share.subnet).sums.add(share, 1)
            self._dirty.add(share.subnet)
        for place in old.addresses.keys() - new.addresses.keys():
            self._remove_address(place, name)
        for place, state in new.addresses.items():
            if old.addresses.get(place) != state:
                self._put_address(place, state, name, is_first=is_first)
        if new is NOTHING:
            self._held.pop(name, None)
        else:
            self._held[name] = new

    def _put_address(
        self, place: tuple[str, int], state: CellState, node: str, *, is_first: bool = False
    ) -> None:
        subnet, address = place
        self._log.mark((_Kind.BLOCK, subnet, self._map(subnet).put(address, state, self._owner(node))))
        if not is_first:
            self._note_time(place)

    def _remove_address(self, place: tuple[str, int], node: str) -> None:
        subnet, address = place
        base = self._map(subnet).remove(address, self._owner(node))
        if base is not None:
            self._log.mark((_Kind.BLOCK, subnet, base))
            self._note_time(place)

    def _note_time(self, place: tuple[str, int]) -> None:
        self._changed_at.pop(place, None)
        self._changed_at[place] = self._clock.wall()
        if len(self._changed_at) > _MOST_CHANGE_TIMES:
            del self._changed_at[next(iter(self._changed_at))]

    def _owner(self, node: str) -> int:
        number = self._owner_numbers.get(node)
        if number is None:
            self._last_owner += 1
            number = self._owner_numbers[node] = self._last_owner
            self._owner_names[number] = node
        return number

    def _forget_owners(self) -> None:
        """Drop the numbers of nodes that are gone, once they are as many as there are nodes."""
        if len(self._owner_numbers) <= 2 * len(self.nodes) + _SPARE_OWNERS:
            return
        left = {*self.nodes, *self._quarantined.values()}
        for node in self._owner_numbers.keys() - left:
            del self._owner_names[self._owner_numbers.pop(node)]

    # Subnets

    def _source(self, name: str) -> SubnetSources:
        source = self._sources.get(name)
        if source is None:
            source = self._sources[name] = SubnetSources(name, SubnetSums(Counter(), Counter()))
        return source

    def _map(self, name: str) -> SubnetMap:
        return self.maps.setdefault(name, SubnetMap())

    def _renew_subnet(self, name: str) -> None:
        source = self._source(name)
        key: Key = (_Kind.SUBNET, name, 0)
        if source.is_gone:
            del self._sources[name]
            self.maps.pop(name, None)
            if self.subnets.pop(name, None) is not None:
                self._log.mark(key)
            return
        there = self._map(name)
        if there.set_ranges(source.ranges(), source.kept_back()):
            self._log.mark((_Kind.BLOCK, name, -1))
        record = subnet_record(source, thresholds_of(source, self._default_thresholds), there.family)
        if record != self.subnets.get(name):
            self.subnets[name] = record
            self._log.record(key)


def _name(
    old: Node | NodeNetworkConfig | ClusterSubnet | ClusterSubnetState | None,
    new: Node | NodeNetworkConfig | ClusterSubnet | ClusterSubnetState | None,
) -> str:
    known = new or old
    assert known is not None  # a change is of an object
    return known.metadata.name
