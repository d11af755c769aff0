"""A subnet's row: its definition, and the totals that are kept in the same transaction as what they count."""

from dataclasses import dataclass, fields
from functools import lru_cache

from podtide.allocator.port import InForce, NoSuchSubnet, Subnet
from podtide.allocator.store.script import Query, Script, insert_into, update_by_id
from podtide.core.subnet_layout import SubnetLayout


@dataclass(slots=True)
class SubnetRow:
    """A subnet as it is in the database, to be changed and saved. Lists of texts are joined by spaces."""

    id: int
    network: str
    name: str
    cidrs: str
    gateway: str
    keep_back: str
    keep_back_first: int
    capacity: int
    reserved: int
    containers: int
    owed: int
    next_chunk: int
    """All chunks from here on were never used, and have no row."""
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

    @property
    def layout(self) -> SubnetLayout:
        """Where its addresses are."""
        return _layout(self.cidrs, self.gateway, self.keep_back, self.keep_back_first)

    @property
    def free(self) -> int:
        """Addresses that are nobody's, those that cool down among them."""
        return self.capacity - self.reserved

    def in_force(self, now: float) -> InForce:
        """What is in force, as the port shows it."""
        return InForce(
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

    def for_callers(self, now: float) -> Subnet:
        """The subnet as the port shows it."""
        return Subnet(
            network=self.network,
            name=self.name,
            cidrs=tuple(self.cidrs.split()),
            gateway=self.gateway,
            keep_back=tuple(self.keep_back.split()),
            keep_back_first=self.keep_back_first,
            capacity=self.capacity,
            reserved=self.reserved,
            containers=self.containers,
            owed=self.owed,
            quarantined=self.quarantined,
            in_force=self.in_force(now),
        )


@lru_cache(maxsize=1024)
def _layout(cidrs: str, gateway: str, keep_back: str, keep_back_first: int) -> SubnetLayout:
    return SubnetLayout(cidrs.split(), gateway, keep_back.split(), keep_back_first)


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
    """The subnet, and whether something of it has rested for long enough; NoSuchSubnet when there is none.

    With `lock`, nobody else changes it, or anything in it, until this transaction ends.
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


def update_subnet(row: SubnetRow) -> Script[None]:
    """Write what may change of a subnet."""
    id_, _network, _name, *others = _values(row)
    yield Query(_UPDATE, (id_, *others))


def _values(row: SubnetRow) -> tuple[object, ...]:
    return tuple(getattr(row, column) for column in _COLUMNS)
