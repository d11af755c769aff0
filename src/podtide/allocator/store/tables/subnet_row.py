"""A subnet's row: its definition, and the totals that are kept in the same transaction as what they count.

Its CIDRs stand in the order of their numbers, and what each of them has stands in lists of the same order. A CIDR that
drains has a count of what is reserved in it: that is in R and in Q until it is given back, and then in neither.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import attrgetter

from podtide.allocator.errors import NoSuchSubnet
from podtide.allocator.store.script import Query, Script, TableChange, insert_into, update_by_id
from podtide.allocator.subnets import Subnet, SubnetInForce
from podtide.core.intervals import Interval
from podtide.core.subnet.chunks import CHUNK_SIZE
from podtide.core.subnet.layout import MOST_ADDRESSES, Block, SubnetLayout
from podtide.core.subnet.usage_account import SubnetTotals, UsageAccount
from podtide.core.subnet.usage_series import MILLISECONDS, to_milliseconds

NONE = "-"
"""In a list with an entry for each CIDR: nothing."""


@dataclass(slots=True)
class SubnetRow:
    """A subnet's row, to be changed and saved. Lists of texts are joined by spaces."""

    id: int
    network: str
    name: str
    cidrs: str
    gateways: str
    """One for each CIDR, and `-` for none."""
    keep_back: str
    keep_back_first: int
    capacity: int
    reserved: int
    containers: int
    owed: int
    next_chunks: str
    """For each CIDR, the chunk from which on all of its chunks were never used, and have no row."""
    sampled: float
    """When its utilization was last written down, in wall-clock seconds."""
    quarantined: int = 0
    batch: int = 0
    """What is in force, from here on; 0 until it was decided for the first time."""
    buffer: str = "0"
    top: int = 0
    exhausted: int = 0
    starved: int = 0
    step: str = ""
    reason: str = ""
    serial: int = 0
    changed_at: float = 0.0
    """Since when batch, buffer and starved are so, in wall-clock seconds."""
    sequence: int = 0
    """Grows with every change of what is granted: the versions of containers are drawn from it."""
    first_chunks: str = "0"
    """For each CIDR, the chunk that its numbers begin with."""
    draining: str = ""
    """For each CIDR, how many of its addresses are reserved if it drains, and `-` if not; "" where none drains."""

    accrued: float = 0.0
    """Up to when its use is accounted for, in wall-clock seconds; what is not written down of it, from here on."""
    peak: int = 0
    reserved_ms: int = 0
    demand_read: float = 0.0
    """When its demand was last read for the history, in wall-clock seconds."""

    @property
    def layout(self) -> SubnetLayout:
        """The layout of its addresses."""
        return _layout(
            self.cidrs,
            self.gateways,
            self.keep_back,
            self.keep_back_first,
            self.first_chunks,
            tuple(self.drains),
        )

    @property
    def drains(self) -> dict[str, int]:
        """The CIDRs that drain, with how many of their addresses are reserved."""
        if not self.draining:
            return {}
        counts = zip(self.cidrs.split(), self.draining.split(), strict=True)
        return {cidr: int(count) for cidr, count in counts if count != NONE}

    @drains.setter
    def drains(self, counts: dict[str, int]) -> None:
        marks = (str(counts.get(cidr, NONE)) for cidr in self.cidrs.split())
        self.draining = " ".join(marks) if counts else ""

    @property
    def draining_reserved(self) -> int:
        """Of the reserved ones, those that are in CIDRs that drain."""
        return sum(self.drains.values())

    def lay_out(self, layout: SubnetLayout) -> None:
        """Set its CIDRs. Those that drain are counted already, and new ones were never used."""
        begun, drains = self._begun, self.drains
        self.cidrs = " ".join(layout.cidrs)
        self.gateways = " ".join(block.gateway or NONE for block in layout.blocks)
        self.first_chunks = " ".join(str(block.first_chunk) for block in layout.blocks)
        self.next_chunks = " ".join(str(begun.get(block.cidr, block.first_chunk)) for block in layout.blocks)
        self.keep_back = " ".join(map(str, layout.keep_back))
        self.drains = {block.cidr: drains[block.cidr] for block in layout.blocks if block.is_draining}
        self.capacity = layout.capacity + self.draining_reserved

    @property
    def _begun(self) -> dict[str, int]:
        return dict(zip(self.cidrs.split(), map(int, self.next_chunks.split()), strict=True))

    @property
    def begun_numbers(self) -> tuple[Interval, ...]:
        """The numbers of the chunks that have a row."""
        begun = self._begun
        return tuple(
            Interval(block.numbers.first, begun[block.cidr] * CHUNK_SIZE - 1)
            for block in self.layout.blocks
            if begun[block.cidr] > block.first_chunk
        )

    def next_chunk(self, block: Block) -> int:
        """The first of a CIDR's chunks that was never used, with all after it."""
        return self._begun[block.cidr]

    def begin_chunk(self) -> int | None:
        """Mark the next unused chunk as used and return it; None when there is none."""
        begun = self._begun
        for block in self.layout.blocks:
            chunk = None if block.is_draining else self.layout.next_chunk(block, begun[block.cidr])
            if chunk is not None:
                begun[block.cidr] = chunk + 1
                self.next_chunks = " ".join(map(str, begun.values()))
                return chunk
        return None

    def begin_up_to(self, chunk: int) -> list[int]:
        """Mark the unused chunks up to this one, within its CIDR, as used and return them."""
        block, begun, new = self.layout.block(chunk), self._begun, list[int]()
        while begun[block.cidr] <= chunk:
            found = self.layout.next_chunk(block, begun[block.cidr])
            if found is None:
                break
            new.append(found)
            begun[block.cidr] = found + 1
        self.next_chunks = " ".join(map(str, begun.values()))
        return new

    def move_unused(self, cidr: str, first_chunk: int) -> bool:
        """Renumber a CIDR to begin with this chunk, and unused ones after it to follow; False where one is in use."""
        blocks, begun = self.layout.blocks, [int(chunk) for chunk in self.next_chunks.split()]
        firsts = [block.first_chunk for block in blocks]
        moved = firsts.index(next(block.first_chunk for block in blocks if block.cidr == cidr))
        following = blocks[moved - 1].last_chunk + 1 if moved else 0
        if first_chunk < following:
            return False
        for index, block in enumerate(blocks[moved:], moved):
            first = first_chunk if index == moved else max(block.first_chunk, following)
            if first != block.first_chunk:
                if begun[index] != block.first_chunk or block.size != block.network.num_addresses:
                    return False
                firsts[index] = begun[index] = first
            following = first + len(block.chunks)
        if following * CHUNK_SIZE > MOST_ADDRESSES:
            return False
        self.first_chunks, self.next_chunks = " ".join(map(str, firsts)), " ".join(map(str, begun))
        return True

    def reserve(self, masks: Mapping[int, int]) -> None:
        """Count these addresses, by chunk, as reserved: they were free, or unreserved in a CIDR that drains."""
        self.reserved += sum(mask.bit_count() for mask in masks.values())
        if drains := self.drains:
            for chunk, mask in masks.items():
                if (block := self.layout.block(chunk)).is_draining:
                    drains[block.cidr] += mask.bit_count()
                    self.capacity += mask.bit_count()
            self.drains = drains

    def unreserve(self, masks: Mapping[int, int]) -> None:
        """Count these addresses, by chunk, as not reserved any more: free, or drained where their CIDR drains."""
        self.reserved -= sum(mask.bit_count() for mask in masks.values())
        if drains := self.drains:
            for chunk, mask in masks.items():
                if (block := self.layout.block(chunk)).is_draining:
                    drains[block.cidr] -= mask.bit_count()
                    self.capacity -= mask.bit_count()
            self.drains = drains

    @property
    def free(self) -> int:
        """How many addresses are free, those that cool down included."""
        return self.capacity - self.reserved

    def in_force(self, now: float) -> SubnetInForce:
        """The parameters in force, as the port's type."""
        return SubnetInForce(
            batch=self.batch,
            buffer=self.buffer,
            top=self.top,
            exhausted=bool(self.exhausted),
            starved=bool(self.starved),
            step=self.step,
            reason=self.reason,
            serial=self.serial,
            age_seconds=now - self.changed_at if self.serial else 0.0,
        )

    @property
    def totals(self) -> SubnetTotals:
        """The totals, as the history takes them."""
        return SubnetTotals(
            capacity=self.capacity,
            reserved=self.reserved,
            owed=self.owed,
            containers=self.containers,
            batch=self.batch,
            exhausted=bool(self.exhausted),
            starved=bool(self.starved),
        )

    @property
    def account(self) -> UsageAccount:
        """What is accounted for of its use, and not written down yet."""
        return UsageAccount(
            to_milliseconds(self.sampled), to_milliseconds(self.accrued), self.peak, self.reserved_ms
        )

    @account.setter
    def account(self, account: UsageAccount) -> None:
        self.sampled, self.accrued = account.written_ms / MILLISECONDS, account.accrued_ms / MILLISECONDS
        self.peak, self.reserved_ms = account.peak, account.reserved_ms

    def for_callers(self, now: float) -> Subnet:
        """The subnet, as the port's type."""
        return Subnet(
            network=self.network,
            name=self.name,
            cidrs=tuple(self.cidrs.split()),
            gateways=tuple(block.gateway for block in self.layout.blocks),
            keep_back=tuple(self.keep_back.split()),
            keep_back_first=self.keep_back_first,
            capacity=self.capacity,
            reserved=self.reserved,
            containers=self.containers,
            owed=self.owed,
            quarantined=self.quarantined,
            in_force=self.in_force(now),
            draining=tuple(self.drains),
            draining_reserved=self.draining_reserved,
        )


@lru_cache(maxsize=1024)
def _layout(  # noqa: PLR0913, PLR0917 - the columns that say it
    cidrs: str,
    gateways: str,
    keep_back: str,
    keep_back_first: int,
    first_chunks: str,
    draining: tuple[str, ...],
) -> SubnetLayout:
    return SubnetLayout(
        cidrs.split(),
        ["" if gateway == NONE else gateway for gateway in gateways.split()],
        keep_back.split(),
        keep_back_first,
        first_chunks=tuple(map(int, first_chunks.split())),
        draining=draining,
    )


_COLUMNS = [field.name for field in fields(SubnetRow)]
COLUMNS = ", ".join(_COLUMNS)
DUE = """EXISTS (SELECT 1 FROM resting
    WHERE resting.subnet = subnets.id AND resting.quarantined = 0 AND resting.until <= $1)"""
"""Whether something of the subnet has rested for long enough."""
_FIND = f"SELECT {COLUMNS}, {DUE} FROM subnets WHERE network = $2 AND name = $3"  # noqa: S608 - our own columns
_LOCK = f"{_FIND} /*lock*/"
_INSERT = insert_into("subnets", _COLUMNS)
_UPDATE = update_by_id("subnets", _COLUMNS[3:])


def find_subnet(network: str, name: str, now: float, *, lock: bool = False) -> Script[tuple[SubnetRow, bool]]:
    """The subnet, and whether a cool-down in it is over; NoSuchSubnet when there is none.

    With `lock`, no other transaction changes it, or anything in it, until this one ends.
    """
    found = yield Query(_LOCK if lock else _FIND, (now, network, name))
    if not found:
        raise NoSuchSubnet(
            f"network {network} has no subnet {name}: add it first, or use one that `podtide subnet list` shows"
        )
    *columns, due = found[0]
    return SubnetRow(*columns), bool(due)


def insert_subnet(row: SubnetRow) -> Script[None]:
    """Write a new subnet."""
    yield Query(_INSERT, _values(row))


def subnet_change(row: SubnetRow) -> TableChange:
    """What may change of a subnet."""
    id_, _network, _name, *others = _values(row)
    return TableChange(_UPDATE, [(id_, *others)])


_values = attrgetter(*_COLUMNS)
