"""A container's row and its grants: what a node has, and what was last wished for it.

A row whose `subnet` is None is a tombstone: the id was deleted and never comes back. A row without a primary is a newcomer
that waits for its first address.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import cast

import msgspec

from podtide.allocator.containers import AllocatedContainer, CidrInUse, GrantedAddress, Wish
from podtide.allocator.store.script import Query, Rows, Script, TableChange, insert_into, update_by_id
from podtide.allocator.store.tables.subnet_row import SubnetRow
from podtide.core.exact import exact, text
from podtide.core.subnet.chunks import CHUNK_SIZE
from podtide.core.subnet.grants import Claim, Order, address_names, is_taken_anew
from podtide.core.subnet.layout import AddressPlace
from podtide.core.subnet.statement import StatedDemand

_COLUMNS = (
    "id", "cluster", "subnet", "node", "primary_number", "version", "request_uid", "generation", "superseded", "wanted",
    "owed", "owed_since", "renewed", "waiting_pods", "stated", "statement_number", "cluster_uid", "confirmed",
    "machine_id", "system_uuid", "boot_id",
)  # fmt: skip
_WIDTH = len(_COLUMNS)
COLUMNS = ", ".join(f"containers.{column}" for column in _COLUMNS)
_INSERT = insert_into("containers", _COLUMNS)
_UPDATE = update_by_id("containers", _COLUMNS[1:])
_READ = f"""SELECT {COLUMNS}, grants.version, grants.chunk, grants.mask
    FROM containers LEFT JOIN grants ON grants.container = containers.id WHERE containers.id IN $1"""  # noqa: S608 - our own columns
_PUT_GRANT = """INSERT INTO grants (container, version, chunk, mask) VALUES ($1, $2, $3, $4)
    ON CONFLICT (container, version, chunk) DO UPDATE SET mask = excluded.mask"""
_REMOVE = "DELETE FROM containers WHERE id = $1"
_REMOVE_GRANTS = "DELETE FROM grants WHERE container = $1"
_DROP_GRANT = "DELETE FROM grants WHERE container = $1 AND version = $2 AND chunk = $3"

MOST_SUPERSEDED = 32
"""How many earlier request objects of a container are remembered: each was deleted by hand, within reach of late wishes."""
NOTHING = ""
"""The text of a container that has asked for nothing yet."""


@dataclass(slots=True)
class ContainerRow:
    """A container's row, to be changed and saved."""

    id: str
    cluster: str
    subnet: int | None
    node: str
    primary_number: int | None = None
    version: int = 0
    request_uid: str = ""
    generation: int = 0
    superseded: str = ""
    """Uids of earlier request objects, joined by spaces."""
    wanted: int = 0
    owed: int = 0
    owed_since: float = 0.0
    renewed: float = 0.0
    waiting_pods: int = 0
    stated: str = ""
    """The statement, as text (see `to_text`)."""
    statement_number: int = 0
    cluster_uid: str = ""
    """Of the cluster that it is of; "" for one from before clusters had uids."""
    confirmed: int = 0
    """The number of the last recovery in which its cluster reported it."""
    machine_id: str = ""
    """What its Node last stated to run on, from here on."""
    system_uuid: str = ""
    boot_id: str = ""
    grants: dict[tuple[int, int], int] = field(default_factory=dict)
    """Masks of secondary addresses by version and chunk."""
    changed_grants: set[tuple[int, int]] = field(default_factory=set)
    saved: tuple[object, ...] | None = None
    """The columns as the database has them; None when it has none."""

    @property
    def columns(self) -> tuple[object, ...]:
        """The values of the row's columns."""
        return cast("tuple[object, ...]", _values(self))

    @property
    def is_deleted(self) -> bool:
        """Whether the row is a tombstone."""
        return self.subnet is None

    @property
    def held(self) -> int:
        """How many secondary addresses it has."""
        return sum(mask.bit_count() for mask in self.grants.values())

    @property
    def taken(self) -> int:
        """How many addresses count as taken: its primary, also while it waits for it, and what it holds or wants."""
        return 1 + max(self.held, self.wanted)

    @property
    def primary(self) -> AddressPlace | None:
        """Where its primary address is."""
        return None if self.primary_number is None else AddressPlace(*divmod(self.primary_number, CHUNK_SIZE))

    @property
    def claim(self) -> Claim:
        """Its claim to the addresses it is owed."""
        return Claim(self.id, self.owed, self.waiting_pods, self.owed_since)

    def is_owed_since_renewal(self, after: float) -> bool:
        """Whether it has a claim that was renewed after that time."""
        return self.owed > 0 and self.renewed > after

    def renew_now(self, now: float) -> None:
        """Renew now a claim that was renewed by a clock that was ahead."""
        if self.owed and self.renewed > now:
            self.renewed, self.owed_since = now, min(self.owed_since, now)

    @property
    def order(self) -> Order:
        """The position of the last accepted wish in the order of the node's wishes."""
        return Order(self.request_uid, self.generation)

    def set_grant(self, version: int, chunk: int, mask: int) -> None:
        """Set the mask of what was granted of a chunk with a version; 0 when nothing is left of it."""
        key = (version, chunk)
        self.changed_grants.add(key)
        if mask:
            self.grants[key] = mask
        else:
            self.grants.pop(key, None)

    def for_callers(self, subnet: SubnetRow) -> AllocatedContainer:
        """The container as the port shows it."""
        layout, primary = subnet.layout, self.primary
        assert primary is not None, "a container without a primary address is not shown to callers"
        home = layout.block(primary.chunk)
        others = {
            block.first_chunk: block for block in (layout.block(chunk) for _version, chunk in self.grants)
        }
        others.pop(home.first_chunk, None)
        addresses: list[GrantedAddress] = []
        for (version, chunk), mask in sorted(self.grants.items()):
            names = address_names(self.id, version, chunk, mask)
            addresses += map(GrantedAddress, names, layout.addresses(chunk, mask))
        in_use = [home, *(block for _first_chunk, block in sorted(others.items()))]
        return AllocatedContainer(
            id=self.id,
            network=subnet.network,
            subnet=subnet.name,
            cluster=self.cluster,
            node=self.node,
            primary=layout.address(primary),
            gateway=home.gateway,
            cidr=home.cidr,
            addresses=tuple(addresses),
            version=self.version,
            request_uid=self.request_uid,
            generation=self.generation,
            wanted=self.wanted,
            owed=self.owed,
            cluster_uid=self.cluster_uid,
            cidrs=tuple(CidrInUse(block.cidr, block.gateway) for block in in_use),
        )


_values = attrgetter(*_COLUMNS)


def load_containers(ids: Sequence[str]) -> Script[dict[str, ContainerRow]]:
    """The containers of these ids with their grants, tombstones among them."""
    if not ids:
        return {}
    return gather_containers((yield Query(_READ, (list(ids),))))


def remove_container(id_: str) -> Script[None]:
    """Delete a container's rows."""
    yield Query(_REMOVE_GRANTS, (id_,))
    yield Query(_REMOVE, (id_,))


def gather_containers(found: Rows) -> dict[str, ContainerRow]:
    """Containers from rows of COLUMNS followed by a grant's version, chunk and mask."""
    rows: dict[str, ContainerRow] = {}
    for joined in found:
        columns, (version, chunk, mask) = joined[:_WIDTH], joined[_WIDTH:]
        if (row := rows.get(columns[0])) is None:
            row = rows[columns[0]] = ContainerRow(*columns)
            row.saved = tuple(columns)
        if mask is not None:
            row.grants[version, chunk] = mask
    return rows


def container_changes(rows: Iterable[ContainerRow]) -> tuple[TableChange, ...]:
    """What changed of the containers.

    A new one is inserted and never merged with one that appeared meanwhile: the transaction then fails, and is run again
    with that one in view.
    """
    new: list[tuple[object, ...]] = []
    changed: list[tuple[object, ...]] = []
    put: list[tuple[object, ...]] = []
    dropped: list[tuple[object, ...]] = []
    for row in rows:
        columns = row.columns
        if row.saved is None:
            new.append(columns)
        elif row.saved != columns:
            changed.append(columns)
        for version, chunk in sorted(row.changed_grants):
            if mask := row.grants.get((version, chunk), 0):
                put.append((row.id, version, chunk, mask))
            else:
                dropped.append((row.id, version, chunk))
    return (
        TableChange(_INSERT, new),
        TableChange(_UPDATE, changed),
        TableChange(_DROP_GRANT, dropped),
        TableChange(_PUT_GRANT, put),
    )


def take_anew(wish: Wish, row: ContainerRow, subnet: int) -> None:
    """Accept a wish that is older than the last one, because its request object went back, as after a restore of etcd.

    Only if it is one to be taken anew, and the container is where it says. Only the order of wishes goes back: what the
    container holds stays, its version goes on growing, and so no name is used twice. Names that such a wish has for
    release are either still the node's to give up, or in no container.
    """
    last = None if wish.instead_of is None else Order(wish.instead_of.request_uid, wish.instead_of.generation)
    if row.cluster != wish.cluster or not is_taken_anew(last, row.order, holds_nothing=row.primary is None):
        return
    if row.is_deleted:
        row.subnet, row.node = subnet, wish.node
    elif (row.subnet, row.node) != (subnet, wish.node):
        return
    row.superseded = " ".join(each for each in row.superseded.split() if each != wish.request_uid)
    row.statement_number = 0
    if row.request_uid == wish.request_uid:
        row.generation = min(row.generation, wish.generation)


@lru_cache(maxsize=16_384)
def to_text(stated: StatedDemand | None) -> str:
    """What a container states, as the text that it is stored and counted by: equal statements have equal texts.

    Compact JSON with every field, so that it means the same whatever the defaults become.
    """
    if stated is None:
        return NOTHING
    same = msgspec.structs.replace(stated, buffer=text(exact(stated.buffer, "buffer")))
    return msgspec.json.encode(same).decode()


@lru_cache(maxsize=16_384)
def from_text(kept: str) -> StatedDemand:
    """The statement in a text of the database."""
    return msgspec.json.decode(kept, type=StatedDemand) if kept else StatedDemand()
