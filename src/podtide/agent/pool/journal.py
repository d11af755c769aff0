"""The journal: a log of records that survives being killed at any instant, and knows when it cannot be believed.

A record is one line: its length, its checksum, and JSON, so that a person with nothing but a pager can read what the
node did, in order. (msgpack would make it a seventh smaller, and no quicker: most of the time goes to the kernel.)

    0000003f 9b1c02d7 {"did":"freed","sandbox":"5f0c…","interface":"eth0"}

The first record is a whole state, every further one a change to it. When the changes have outgrown the state, the file
is replaced by one that holds the state as it then is: the journal of a node that runs for years stays small.

What a reader finds at the end tells how the writer stopped:

- whole records only: nothing was under way;
- the beginning of a record, or zeros in its place: the writer was killed while it appended, or power was cut. What is
  missing was never synced; the torn record is cut off;
- anything else that is no record: the file was damaged after it was written. What that record did nobody can say, so
  neither those before it nor those behind it tell what is so now: `Damaged`.

**What is synced.** An append is the kernel's as soon as it returns, so it survives kill -9 of this process. Only a
machine that stops loses it, and then no sandbox is left that could have the address: for assigning and freeing that is
enough, and an ADD does not wait for the disk. What this node promises to others must not be forgotten with the power,
and so is durable before it is said: a name given up for release (forgotten, the address would be handed out here while
the allocator gives it to another node), and whom the journal belongs to.

**When the disk fails.** After a sync that failed, or anything that fails once the file was renamed, nobody knows what is
on the disk, and no further sync tells. Nothing is appended any more, the program ends, and the next one begins by writing
anew what it reads (`resume`).
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from zlib import crc32

from msgspec import Struct

from podtide.core.errors import StopError
from podtide.runtime.disk import Disk, DiskError, DiskFailed, DiskFull

_HEADER = re.compile(rb"([0-9a-f]{8}) ([0-9a-f]{8}) ")
_SAMPLE_HEADER = b"00000000 00000000 "
_HEADER_BYTES = len(_SAMPLE_HEADER)
_GROWTH = 4
_SLACK_BYTES = 256 * 1024
"""A journal is rewritten when it is larger than `_GROWTH` states and this: some 600 pods that came and went."""


class Damaged(StopError):
    """The journal cannot be believed. The words say where and why."""


class Record(Struct, frozen=True):
    """What was appended, and where in the file it begins."""

    start: int
    payload: bytes


class Records(Struct, frozen=True):
    """Everything that can be read: what lies beyond `good_bytes` is a torn record."""

    records: tuple[Record, ...]
    good_bytes: int


def encode_record(payload: bytes) -> bytes:
    """The line that holds a payload, which must not contain a newline itself."""
    return b"%08x %08x %b\n" % (len(payload), crc32(payload), payload)


def read_records(content: bytes) -> Records:
    """The records of a file, without a torn last one. Damaged when anything else is wrong."""
    records = []
    start = 0
    while start < len(content):
        payload = _payload_at(content, start)
        if payload is None:
            if not _is_beginning_of_record(content[start:]):
                raise Damaged(f"the record at byte {start} of {len(content)} is damaged")
            break
        records.append(Record(start, payload))
        start += _HEADER_BYTES + len(payload) + 1
    return Records(tuple(records), start)


def _payload_at(content: bytes, start: int) -> bytes | None:
    """The payload of the record that begins here; None if it is not whole."""
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


class Journal:
    """The file, open at its end. One writer: whoever holds the directory's lock."""

    def __init__(self, disk: Disk, name: str, found: Records) -> None:
        self._disk = disk
        self._name = name
        self._slack_bytes = _SLACK_BYTES
        self._size = found.good_bytes
        self._state_bytes = len(encode_record(found.records[0].payload))
        self._limit = self._usual_limit()
        self._log = disk.open_log(name, found.good_bytes)
        self._has_failed = False

    @classmethod
    def begin(cls, disk: Disk, name: str, state: bytes) -> "Journal":
        """Put a journal there that holds this state and nothing else, durably."""
        content = encode_record(state)
        disk.replace(name, content)
        return cls(disk, name, read_records(content))

    @classmethod
    def resume(cls, disk: Disk, name: str, content: bytes, found: Records) -> "Journal":
        """Go on with what was read of a journal, after writing it anew.

        That it could be read does not mean that it is on the disk: a sync may have failed before, and then the kernel
        keeps what it could not write, and reports success when asked again. Where there is no room for that, it goes on
        with the file as it is: an agent that does not start frees nothing, and its node serves no pod.
        """
        with suppress(DiskFull):
            disk.replace(name, content[: found.good_bytes])
        return cls(disk, name, found)

    def shorten_after(self, slack_bytes: int) -> None:
        """Let it be overgrown when it has grown by so much, besides a few times its state."""
        self._slack_bytes = slack_bytes
        self._limit = self._usual_limit()

    def is_overgrown(self) -> bool:
        """Whether it is time to `rewrite`."""
        return self._size > self._limit

    def append(self, change: bytes, *, durable: bool) -> None:
        """Add a change; `durable` waits for the disk. DiskFull leaves the journal as it was.

        DiskFailed means that nobody knows what reached the disk. Nothing can be appended any more: stop, start again,
        and believe what is read then.
        """
        record = encode_record(change)
        with self._until_it_fails():
            self._log.append(record)
            self._size += len(record)
            if durable:
                self._log.sync()

    def rewrite(self, state: bytes) -> None:
        """Begin anew with this state, which is what the journal amounts to. Whatever crashes, one of the two is there.

        DiskFull leaves the journal as it was, and not overgrown for a while. DiskFailed, as of `append`: the file may have
        another's name by now, or none, and whatever was appended to it would be lost.
        """
        content = encode_record(state)
        with self._until_it_fails():
            try:
                self._disk.replace(self._name, content)
            except DiskFull:
                self._limit = self._size + self._slack_bytes
                raise
            self._go_on_with(content)
        self._size = self._state_bytes = len(content)
        self._limit = self._usual_limit()

    def close(self) -> None:
        """Stop writing."""
        self._log.close()

    def _go_on_with(self, content: bytes) -> None:
        """The file has been renamed: whatever fails from now on, the log that is open is of a file without a name."""
        try:
            self._log.close()
            self._log = self._disk.open_log(self._name, len(content))
        except DiskError as error:
            raise DiskFailed(
                f"the journal was written anew, and cannot be gone on with: {error}; start again"
            ) from error

    @contextmanager
    def _until_it_fails(self) -> Iterator[None]:
        """The first DiskFailed is the end: nothing is written after it, whatever the disk says then."""
        if self._has_failed:
            raise DiskFailed(f"cannot write to {self._name}: it has failed; open it again")
        try:
            yield
        except DiskFailed:
            self._has_failed = True
            raise

    def _usual_limit(self) -> int:
        return _GROWTH * self._state_bytes + self._slack_bytes
