"""From the journal's bytes to what the node knows, and back: all of it, or `Damaged`.

A checksum proves that a record is as it was written, not that it makes sense. One that cannot be understood, or that
contradicts those before it, damages the journal like a flipped bit does.
"""

import msgspec
from msgspec import Struct

from podtide.agent.pool.journal import Damaged, Record
from podtide.agent.pool.journal_records import AnyChange, Beginning, Change, PoolState
from podtide.core.pool.pool import Pool
from podtide.core.pool.states import BrokenPool

FORMAT = 1

_encoder = msgspec.json.Encoder()
_changes: msgspec.json.Decoder[AnyChange] = msgspec.json.Decoder(AnyChange)


class _Format(Struct, frozen=True):
    """Of a first record that another podtide wrote, this much can be read."""

    format: int


def encode_change(change: Change[object]) -> bytes:
    """A change as a record's payload."""
    return _encoder.encode(change)


def encode_state(state: PoolState) -> bytes:
    """A state as the payload of a first record."""
    return _encoder.encode(
        Beginning(
            FORMAT, state.identity, state.lost, state.pool.snapshot(), former=state.former, doubt=state.doubt
        )
    )


def replay(records: tuple[Record, ...], pool: Pool, now: float) -> PoolState:
    """What the records amount to, in a pool that is new. For the pool all of it happens now."""
    if not records:
        raise Damaged("it has no whole first record")
    state = PoolState(pool)
    for record in records:
        try:
            step = _changes.decode(record.payload) if record.start else _decode_beginning(record.payload)
            step.carry_out(state, now)
        except msgspec.DecodeError as error:
            raise Damaged(f"the record at byte {record.start} cannot be understood: {error}") from error
        except BrokenPool as error:
            raise Damaged(f"the record at byte {record.start} makes no sense: {error}") from error
    return state


def _decode_beginning(payload: bytes) -> Beginning:
    found = msgspec.json.decode(payload, type=_Format).format
    if found != FORMAT:
        raise Damaged(f"it has format {found}, and this podtide reads format {FORMAT}")
    return msgspec.json.decode(payload, type=Beginning)
