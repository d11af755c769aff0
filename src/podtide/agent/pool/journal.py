"""The format of the journal: how records are framed, what each of them says, and how they are replayed.

**Framing.** A record is one line: the payload's length and CRC-32 in hexadecimal, then the payload, which is JSON, so that
a person with nothing but a pager can read what the node did, in order. (msgpack would make it a seventh smaller, and
no quicker: most of the time goes to the kernel.)

    0000003f 9b1c02d7 {"did":"freed","sandbox":"5f0c…","interface":"eth0"}

**Records.** The first one is a whole state (`Beginning`), each further one a change to it (`did` names it). A record holds
what was decided, not how: the pool chooses once and its choice is written down, so that replay needs neither a clock nor
the rules by which it was chosen, and a newer podtide with better rules still reads what an older one wrote. The live
program and the replay call the same `apply_to`.

**Replay.** The end of the file tells how the writer stopped:

- whole records only: no append was under way;
- the beginning of a record, or zeros in its place: the writer was killed while it appended, or power was cut. What is
  missing was never synced; the torn record is cut off;
- anything else that is not a record: the file was damaged after it was written. What that record did is unknown, so
  neither the records before it nor those behind it tell what is so now: `Damaged`. The same goes for a record whose
  checksum is right and which cannot be decoded, or contradicts those before it.

**Durability.** An append is the kernel's as soon as it returns, so it survives kill -9 of this process. Only a machine
that stops loses it, and then no sandbox is left that could have the address: for assigning and freeing that is enough,
and an ADD does not wait for the disk. What this node promises to others must survive a power cut, so it is synced before
it is said (`durable`): a name given up for release (else the address would be handed out here again while the allocator
gives it to another node), and which Node the journal belongs to.

`journal_file` is the file that records are appended to, and `agent.networks.address_record` uses the same framing for
records of its own.
"""

import re
from typing import ClassVar, Protocol, TypeVar
from zlib import crc32

import msgspec
from msgspec import Struct

from podtide import __version__
from podtide.agent.pool.file_format import FileFormat
from podtide.core.errors import StopError
from podtide.core.pool.address import Address, Owner
from podtide.core.pool.pool import AppliedContainer, GrantedContainer, Pool
from podtide.core.pool.snapshot import PoolSnapshot
from podtide.core.pool.states import BrokenPool

JOURNAL = "agent.journal"
"""The name of the file."""
FORMAT = 1
"""The version of the records, stated in the first one. An older podtide refuses a later one (`file_format`)."""
_WAY_OUT = "move that file away: the pool is then rebuilt from the cluster"

_HEADER = re.compile(rb"([0-9a-f]{8}) ([0-9a-f]{8}) ")
_SAMPLE_HEADER = b"00000000 00000000 "
_HEADER_BYTES = len(_SAMPLE_HEADER)
_MOST_FORMER = 16

T_co = TypeVar("T_co", covariant=True)


class Damaged(StopError):
    """The journal cannot be trusted. The message says where and why."""


# Framing


class JournalRecord(Struct, frozen=True):
    """A payload, and the byte of the file at which its record begins."""

    start: int
    payload: bytes


class JournalRecords(Struct, frozen=True):
    """The whole records of a file; what lies beyond `good_bytes` is a torn one."""

    records: tuple[JournalRecord, ...]
    good_bytes: int


def encode_record(payload: bytes) -> bytes:
    """The line that holds a payload, which must not contain a newline itself."""
    return b"%08x %08x %b\n" % (len(payload), crc32(payload), payload)


def read_records(content: bytes) -> JournalRecords:
    """The records of a file, without a torn last one. Damaged when anything else is wrong."""
    records = []
    start = 0
    while start < len(content):
        payload = _payload_at(content, start)
        if payload is None:
            if not _is_beginning_of_record(content[start:]):
                raise Damaged(f"the record at byte {start} of {len(content)} is damaged")
            break
        records.append(JournalRecord(start, payload))
        start += _HEADER_BYTES + len(payload) + 1
    return JournalRecords(tuple(records), start)


def _payload_at(content: bytes, start: int) -> bytes | None:
    """The payload of the record that begins here; None if the record is not whole."""
    header = _HEADER.match(content, start)
    if header is None:
        return None
    length, checksum = (int(number, 16) for number in header.groups())
    end = header.end() + length
    payload = content[header.end() : end]
    return payload if content[end : end + 1] == b"\n" and crc32(payload) == checksum else None


def _is_beginning_of_record(rest: bytes) -> bool:
    """Whether this is all of a record that was appended, or was to be: the newline comes last.

    After a power cut a file can have the length it was to have, with zeros where the data did not arrive.
    """
    rest = rest.rstrip(b"\0")
    header = _HEADER.match(rest + _SAMPLE_HEADER[len(rest) :])
    return header is not None and b"\n" not in rest and len(rest) <= _HEADER_BYTES + int(header[1], 16)


# The state, and the records that change it


class Identity(Struct, frozen=True, omit_defaults=True):
    """The Node and the NodeNetworkConfig that the records belong to, by uid."""

    node_uid: str
    config_uid: str
    made: str = ""
    """The creation timestamp of the NodeNetworkConfig."""

    def is_after(self, made: str) -> bool:
        """Whether an object with that creation timestamp cannot be newer than this one, as far as both have one."""
        return bool(made) and made <= self.made


class PoolState:
    """The state that the records add up to."""

    def __init__(self, pool: Pool, identity: Identity | None = None, lost: str = "") -> None:
        self.pool = pool
        self.identity = identity
        self.lost = lost
        """Why earlier records cannot be trusted; "" when they are whole, or do not matter any more."""
        self.former: tuple[str, ...] = ()
        """Uids of earlier NodeNetworkConfigs: one that returns comes from a backup."""
        self.doubt = ""
        """The mark of the question whether the NodeNetworkConfig is up to date; "" when there is no question."""


class PoolChange(Protocol[T_co]):
    """Any record but the first."""

    durable: ClassVar[bool]
    """Whether it is synced to the disk before it is applied."""

    def apply_to(self, state: PoolState, now: float, /) -> T_co:
        """Change the state. Returns what the pool returns."""
        ...


class _Record(Struct, frozen=True, tag_field="did", omit_defaults=True):
    durable: ClassVar[bool] = False


class Beginning(Struct, frozen=True, omit_defaults=True):
    """The first record: the state that all others change."""

    format: int
    identity: Identity | None = None
    lost: str = ""
    pool: PoolSnapshot = PoolSnapshot()
    former: tuple[str, ...] = ()
    doubt: str = ""
    podtide: str = ""
    """The version of the podtide that wrote the record."""

    def apply_to(self, state: PoolState, now: float) -> None:
        """Restore a new state from this one."""
        state.identity, state.lost = self.identity, self.lost
        state.former, state.doubt = self.former, self.doubt
        state.pool.restore(self.pool, now)


class NodeBound(_Record, frozen=True, tag="bound"):
    """The records belong to this Node and NodeNetworkConfig from now on."""

    identity: Identity

    durable: ClassVar[bool] = True

    def apply_to(self, state: PoolState, _now: float) -> None:
        """Replace the identity, and remember the NodeNetworkConfig before it as a former one."""
        before = state.identity.config_uid if state.identity is not None else ""
        if before and before != self.identity.config_uid:
            known = [uid for uid in state.former if uid not in (before, self.identity.config_uid)]
            state.former = (*known, before)[-_MOST_FORMER:]
        state.identity = self.identity


class Doubted(_Record, frozen=True, tag="doubted"):
    """The NodeNetworkConfig was deleted: if it is seen again, it may come from a backup."""

    mark: str

    durable: ClassVar[bool] = True

    def apply_to(self, state: PoolState, _now: float) -> None:
        """Set the mark."""
        state.doubt = self.mark


class Believed(_Record, frozen=True, tag="believed"):
    """The NodeNetworkConfig was confirmed as present, and its containers were applied."""

    def apply_to(self, state: PoolState, _now: float) -> None:
        """Clear the mark."""
        state.doubt = ""


class ContainerApplied(_Record, frozen=True, tag="applied"):
    """A new version of a network container came."""

    container: GrantedContainer

    def apply_to(self, state: PoolState, now: float) -> AppliedContainer:
        """Add what it grants anew, and remove what was released."""
        return state.pool.apply(self.container, now)


class CarriedOver(_Record, frozen=True, tag="carried over"):
    """The machine is another Node by now, whose container grants addresses of former ones."""

    container: GrantedContainer
    former: tuple[str, ...]

    def apply_to(self, state: PoolState, now: float) -> tuple[str, ...]:
        """Move these addresses into the container, under their new names."""
        return state.pool.carry_over(self.container, self.former, now)


class Recovered(_Record, frozen=True, tag="recovered"):
    """A network container came while the records were lost."""

    container: GrantedContainer
    named: tuple[str, ...]

    def apply_to(self, state: PoolState, now: float) -> AppliedContainer:
        """Quarantine its addresses, except those that were named for release."""
        return state.pool.recover(self.container, self.named, now)


class Withdrawn(_Record, frozen=True, tag="withdrawn"):
    """The node no longer has a network container."""

    container_id: str

    def apply_to(self, state: PoolState, now: float) -> AppliedContainer:
        """Remove its addresses, except those that sandboxes have."""
        return state.pool.withdraw(self.container_id, now)


class Programmed(_Record, frozen=True, tag="programmed"):
    """The network carries these addresses now."""

    names: tuple[str, ...]

    def apply_to(self, state: PoolState, now: float) -> None:
        """Make them available."""
        state.pool.programmed(self.names, now)


class Assigned(_Record, frozen=True, tag="assigned"):
    """A sandbox got addresses."""

    owner: Owner
    ips: tuple[str, ...]

    def apply_to(self, state: PoolState, now: float) -> tuple[Address, ...]:
        """Assign the addresses that were chosen."""
        return state.pool.take(self.owner, self.ips, now)


class Freed(_Record, frozen=True, tag="freed"):
    """A sandbox gave back its addresses."""

    sandbox: str
    interface: str

    def apply_to(self, state: PoolState, now: float) -> tuple[Address, ...]:
        """Free them."""
        return state.pool.free(self.sandbox, self.interface, now)


class Named(_Record, frozen=True, tag="named"):
    """Addresses were given up for release."""

    container_id: str
    names: tuple[str, ...]

    durable: ClassVar[bool] = True

    def apply_to(self, state: PoolState, now: float) -> None:
        """Never assign them again."""
        state.pool.name(self.container_id, self.names, now)


class Adopted(_Record, frozen=True, tag="adopted"):
    """A pod's status showed a quarantined address."""

    ip: str
    owner: Owner

    def apply_to(self, state: PoolState, now: float) -> bool:
        """Assign it to the pod's owner."""
        return state.pool.adopt(self.ip, self.owner, now)


class ProvenFree(_Record, frozen=True, tag="proven free"):
    """Every pod has shown its addresses."""

    contested: tuple[str, ...] = ()

    def apply_to(self, state: PoolState, now: float) -> int:
        """End the quarantine of all that is not contested; with none left, lost records do not matter any more."""
        if not self.contested:
            state.lost = ""
        return state.pool.prove_free(now, self.contested)


AnyPoolChange = (
    NodeBound
    | Doubted
    | Believed
    | ContainerApplied
    | CarriedOver
    | Recovered
    | Withdrawn
    | Programmed
    | Assigned
    | Freed
    | Named
    | Adopted
    | ProvenFree
)

_encoder = msgspec.json.Encoder()
_changes: msgspec.json.Decoder[AnyPoolChange] = msgspec.json.Decoder(AnyPoolChange)


# Encoding and replay


def encode_change(change: PoolChange[object]) -> bytes:
    """A change as a record's payload."""
    return _encoder.encode(change)


def encode_state(state: PoolState) -> bytes:
    """A state as the payload of a first record."""
    return _encoder.encode(
        Beginning(
            FORMAT,
            state.identity,
            state.lost,
            state.pool.snapshot(),
            former=state.former,
            doubt=state.doubt,
            podtide=__version__,
        )
    )


def replay(records: tuple[JournalRecord, ...], pool: Pool, now: float) -> PoolState:
    """The state that the records add up to, in a new pool, as if all of it happened now. Damaged if they do not fit.

    NewerFormat if a newer podtide wrote them.
    """
    if not records:
        raise Damaged("its first record is missing or incomplete")
    state = PoolState(pool)
    for record in records:
        try:
            step = _changes.decode(record.payload) if record.start else _decode_beginning(record.payload)
            step.apply_to(state, now)
        except msgspec.DecodeError as error:
            raise Damaged(f"the record at byte {record.start} cannot be understood: {error}") from error
        except BrokenPool as error:
            raise Damaged(f"the record at byte {record.start} makes no sense: {error}") from error
    return state


def _decode_beginning(payload: bytes) -> Beginning:
    stated = msgspec.json.decode(payload, type=FileFormat)
    stated.refuse_newer(JOURNAL, FORMAT, _WAY_OUT)
    if stated.format != FORMAT:
        raise Damaged(f"it has format {stated.format}, and this podtide reads format {FORMAT}")
    return msgspec.json.decode(payload, type=Beginning)
