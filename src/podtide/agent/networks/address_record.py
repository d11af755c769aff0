"""The record of addresses of secondary networks that this node's sandboxes have, kept on disk across restarts.

An ADD writes the pool, then appends a line here, and is answered last. So every address that a sandbox was told is on
record until its DEL is carried out. Addresses are chosen from pools only, never from the record: it is compared with the
pools when the cluster was restored from a backup (`core.networks.recorded_addresses`).

An appended line is in the kernel's cache, so it survives kill -9. When the machine stops, a line that says what was given
may be lost, but then no sandbox is left that could have the address. A line that says that an address was given up is
synced: without it the address would be put back for a sandbox that is long gone, as long as its pod lives in another. So
is a line that says that a pool went back: without it an entry from the backup would be taken for the pod's.
"""

import asyncio
from collections import Counter
from collections.abc import Collection
from contextlib import suppress

import msgspec
from msgspec import Struct, structs

from podtide import __version__
from podtide.agent.pool.file_format import FileFormat
from podtide.agent.pool.journal import Damaged, read_records
from podtide.agent.pool.journal_file import Journal
from podtide.core.intervals import Interval
from podtide.core.networks.allocations import Allocation
from podtide.core.networks.reservations import Key
from podtide.core.networks.restoration import RecordedAddress
from podtide.core.ranges import AddressRange, IPAddress, parse_address, parse_network
from podtide.networks.network import NetworkRange
from podtide.runtime.disk import Disk, DiskFailed, DiskFull
from podtide.runtime.logging import Logger

JOURNAL = "networks.journal"
DAMAGED_JOURNAL = "networks.journal.damaged"
FORMAT = 1
"""The version of the lines, stated in the first one. An older podtide refuses a later one (`agent.pool.file_format`)."""
_WAY_OUT = "move that file away: should etcd then be restored from a backup, the addresses assigned until now cannot be put back"

PoolKey = tuple[bool, str]
"""Whether all nodes share the pool, and what tells it from others of its kind."""
_Place = tuple[Key, str]
"""A sandbox's interface, and an address."""


class Given(Struct, frozen=True, kw_only=True):
    """An address that a sandbox's interface has, and all that is needed to put it back where it came from."""

    pool: PoolKey
    address: str
    holder: Allocation
    guarded: bool
    network_name: str
    configuration_name: str
    range: str
    slice_size: int | None
    further: bool

    @property
    def key(self) -> Key:
        """The sandbox and its interface."""
        return self.holder.id, self.holder.ifname

    @property
    def ip(self) -> IPAddress:
        """The address."""
        return parse_address(self.address)

    @classmethod
    def of(
        cls, pool: PoolKey, holder: Allocation, address: IPAddress, wanted: NetworkRange, *, guarded: bool
    ) -> "Given":
        """An address of a range, as an interface is given it."""
        return cls(
            pool=pool,
            address=str(address),
            holder=structs.replace(holder, earlier=()),
            guarded=guarded,
            network_name=wanted.network_name,
            configuration_name=wanted.configuration_name,
            range=str(wanted.addresses.network),
            slice_size=wanted.slice_size,
            further=wanted.further,
        )

    def recorded(self) -> RecordedAddress:
        """The same, as far as decisions depend on it."""
        return RecordedAddress(
            address=self.ip,
            holder=self.holder,
            reservation_name=self.wanted.reservation_name(self.ip) if self.guarded else "",
        )

    @property
    def wanted(self) -> NetworkRange:
        """The range that it is of."""
        network = parse_network(self.range)
        return NetworkRange(
            network_name=self.network_name,
            configuration_name=self.configuration_name,
            addresses=AddressRange(network, (Interval(0, network.num_addresses - 1),)),
            slice_size=self.slice_size,
            further=self.further,
        )


class _Change(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line: an address that was given, an interface that has nothing of a pool any more, or a pool that went back."""

    pool: PoolKey
    version: int
    """The pool's resourceVersion: it only ever grows, unless the cluster went back."""
    given: Given | None = None
    gone: Key | None = None
    went_back_at: float | None = None
    """When the pool was seen to go back, in wall-clock seconds."""
    is_restored: bool = False
    """Whether all that follows from that is done."""


class _State(Struct, frozen=True):
    """The first line: everything, as it was then."""

    given: tuple[Given, ...] = ()
    versions: tuple[tuple[PoolKey, int], ...] = ()
    went_back: tuple[tuple[PoolKey, float], ...] = ()
    format: int = FORMAT
    podtide: str = __version__
    """The version of the podtide that wrote the line."""


class GivenAddresses:
    """The record. Without a disk it is kept in memory alone."""

    def __init__(self, disk: Disk | None, log: Logger) -> None:
        self.failed = asyncio.Event()
        """Set when it is unknown what is on the disk: then the agent has to end."""
        self.failure: DiskFailed | None = None
        self._by_pool: dict[PoolKey, dict[_Place, Given]] = {}
        self._versions: dict[PoolKey, int] = {}
        self._recorded: dict[_Place, RecordedAddress] = {}
        """Computed from what was given: pools are compared with it again and again."""
        self._epochs: Counter[PoolKey] = Counter()
        """How often each pool was seen to go back."""
        self._confirmed: dict[_Place, int] = {}
        """In which epoch a pool last had it for the sandbox."""
        self._went_back_at: dict[PoolKey, float] = {}
        self._journal = self._open(disk, log) if disk is not None else None

    def of(self, pool: PoolKey) -> tuple[Given, ...]:
        """What was given of a pool."""
        return tuple(self._by_pool.get(pool, {}).values())

    def by(self, pool: PoolKey, key: Key) -> tuple[Given, ...]:
        """What an interface was given of a pool."""
        return tuple(given for given in self.of(pool) if given.key == key)

    def recorded(self, pool: PoolKey) -> tuple[RecordedAddress, ...]:
        """What was given of a pool, as far as decisions depend on it."""
        return tuple(
            structs.replace(recorded, is_from_before=True) if self._is_from_before(given) else recorded
            for given in self.of(pool)
            for recorded in (self._recorded_as(given),)
        )

    def _recorded_as(self, given: Given) -> RecordedAddress:
        place = given.key, given.address
        if place not in self._recorded:
            self._recorded[place] = given.recorded()
        return self._recorded[place]

    def pools(self) -> dict[PoolKey, NetworkRange]:
        """The pools of which anything was given, each with the range that it is of."""
        return {pool: next(iter(given.values())).wanted for pool, given in self._by_pool.items()}

    def note(self, given: Given) -> None:
        """Record that an interface has this. DiskFull when it cannot be recorded: then its ADD must fail."""
        place = given.key, given.address
        if self._by_pool.get(given.pool, {}).get(place) != given:
            change = _Change(pool=given.pool, version=self._versions.get(given.pool, 0), given=given)
            self._append(change, durable=False)
            self._by_pool.setdefault(given.pool, {})[place] = given
            self._recorded.pop(place, None)
        self.confirm(given.pool, given.key, given.ip)

    def confirm(self, pool: PoolKey, key: Key, address: IPAddress) -> None:
        """The pool has it for the sandbox, as it is now."""
        self._confirmed[key, str(address)] = self._epochs[pool]

    def drop(self, pool: PoolKey, keys: Collection[Key]) -> None:
        """Interfaces have nothing of a pool any more. All of them wait for the disk once, with the last."""
        dropped = [key for key in dict.fromkeys(keys) if self.by(pool, key)]
        for key in dropped:
            change = _Change(pool=pool, version=self._versions.get(pool, 0), gone=key)
            self._append(change, durable=key is dropped[-1])
        for key in dropped:
            self._forget(pool, key)

    def _is_from_before(self, given: Given) -> bool:
        """Whether the pool went back since it last had it for the sandbox."""
        return self._confirmed.get((given.key, given.address), 0) < self._epochs[given.pool]

    def hear(self, pool: PoolKey, version: int) -> bool:
        """Note the pool's version by a fresh read or a write, 0 when it is gone. Returns whether it went back."""
        before, self._versions[pool] = self._versions.get(pool, 0), version
        if version < before:
            self._epochs[pool] += 1
        return version < before

    def note_back(self, pool: PoolKey, at: float) -> None:
        """The pool was seen to go back, at this wall-clock time: the next agent has to know, too."""
        self._went_back_at[pool] = at
        change = _Change(pool=pool, version=self._versions.get(pool, 0), went_back_at=at)
        with suppress(DiskFull):  # then only this one knows
            self._append(change, durable=True)

    def note_restored(self, pool: PoolKey) -> None:
        """What the backup brought back is removed: there is nothing to remember any more."""
        self._went_back_at.pop(pool, None)
        change = _Change(pool=pool, version=self._versions.get(pool, 0), is_restored=True)
        with suppress(DiskFull):  # then the next agent looks once more
            self._append(change, durable=False)

    def went_back_at(self, pool: PoolKey) -> float | None:
        """When the pool was seen to go back, in wall-clock seconds, by this agent or one before it; None when all is done."""
        return self._went_back_at.get(pool)

    def close(self) -> None:
        """Stop writing."""
        if self._journal is not None:
            self._journal.close()

    # How it is kept

    def _forget(self, pool: PoolKey, key: Key) -> None:
        held = self._by_pool.get(pool, {})
        for place in [place for place in held if place[0] == key]:
            del held[place]
            self._confirmed.pop(place, None)
            self._recorded.pop(place, None)
        if not held:
            self._by_pool.pop(pool, None)

    def _append(self, change: _Change, *, durable: bool) -> None:
        if self._journal is None:
            return
        try:
            if self._journal.is_overgrown():
                given = tuple(given for held in self._by_pool.values() for given in held.values())
                state = _State(given, tuple(self._versions.items()), tuple(self._went_back_at.items()))
                self._journal.rewrite(msgspec.json.encode(state))
            self._journal.append(msgspec.json.encode(change), durable=durable)
        except DiskFailed as error:
            self.failure = error
            self.failed.set()
            raise

    def _open(self, disk: Disk, log: Logger) -> Journal:
        content = disk.read(JOURNAL)
        if content is not None:
            try:
                return self._replay(disk, content)
            except (Damaged, msgspec.DecodeError) as error:
                log.error(  # noqa: TRY400 - a traceback would not help the reader
                    "the record of secondary networks' addresses is damaged, and a new one is begun: should etcd be "
                    "restored from a backup, the addresses assigned until now cannot be put back",
                    error=str(error),
                    kept_as=DAMAGED_JOURNAL,
                )
                self._by_pool.clear()
                self._versions.clear()
                self._went_back_at.clear()
                self._epochs.clear()
                disk.replace(DAMAGED_JOURNAL, content)
        return Journal.begin(disk, JOURNAL, msgspec.json.encode(_State()))

    def _replay(self, disk: Disk, content: bytes) -> Journal:
        found = read_records(content)
        if not found.records:
            raise Damaged("its first record is missing or incomplete")
        first = found.records[0].payload
        msgspec.json.decode(first, type=FileFormat).refuse_newer(JOURNAL, FORMAT, _WAY_OUT)
        state = msgspec.json.decode(first, type=_State)
        self._versions.update(state.versions)
        for pool, at in state.went_back:
            self._replay_going_back(pool, at)
        for given in state.given:
            self._by_pool.setdefault(given.pool, {})[given.key, given.address] = given
        for record in found.records[1:]:
            change = msgspec.json.decode(record.payload, type=_Change)
            self._versions[change.pool] = change.version
            if change.given is not None:
                self._by_pool.setdefault(change.pool, {})[change.given.key, change.given.address] = (
                    change.given
                )
            if change.gone is not None:
                self._forget(change.pool, change.gone)
            if change.went_back_at is not None:
                self._replay_going_back(change.pool, change.went_back_at)
            if change.is_restored:
                self._went_back_at.pop(change.pool, None)
        return Journal.resume(disk, JOURNAL, content, found)

    def _replay_going_back(self, pool: PoolKey, at: float) -> None:
        """What was given before, the pool need not have put back yet."""
        self._went_back_at[pool] = at
        self._epochs[pool] += 1
