"""The journal's file: appended to, rewritten when it has outgrown its state, and safe to kill at any instant.

What its records are is in `journal`. The first is a whole state, every further one a change to it. When the changes have
outgrown the state, the file is replaced by one that holds the state as it then is: the journal of a node that runs for
years stays small.

**When the disk fails.** After a sync that failed, or anything that fails once the file was renamed, what is on the disk is
unknown, and no further sync tells. Nothing is appended any more, the program ends, and the next one begins by writing anew
what it reads (`resume`).
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from podtide.agent.pool.journal import JournalRecords, encode_record, read_records
from podtide.runtime.disk import Disk, DiskError, DiskFailed, DiskFull

_GROWTH = 4
_SLACK_BYTES = 256 * 1024
"""A journal is rewritten when it is larger than `_GROWTH` states and this: some 600 pods that came and went."""


class Journal:
    """The file, open at its end. It has one writer: the holder of the directory's lock."""

    def __init__(self, disk: Disk, name: str, found: JournalRecords) -> None:
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
        """Create a journal that holds this state and nothing else, durably."""
        content = encode_record(state)
        disk.replace(name, content)
        return cls(disk, name, read_records(content))

    @classmethod
    def resume(cls, disk: Disk, name: str, content: bytes, found: JournalRecords) -> "Journal":
        """Go on with what was read of a journal, after writing it anew.

        That it could be read does not mean that it is on the disk: a sync may have failed before, and then the kernel
        keeps what it could not write, and reports success when asked again. Where there is no room for that, it goes on
        with the file as it is: an agent that does not start frees nothing, and its node serves no pod.
        """
        with suppress(DiskFull):
            disk.replace(name, content[: found.good_bytes])
        return cls(disk, name, found)

    def shorten_after(self, slack_bytes: int) -> None:
        """Rewrite it when it has grown by so many bytes, besides a few times the size of its state."""
        self._slack_bytes = slack_bytes
        self._limit = self._usual_limit()

    def is_overgrown(self) -> bool:
        """Whether it is time to `rewrite`."""
        return self._size > self._limit

    def append(self, change: bytes, *, durable: bool) -> None:
        """Add a change; `durable` waits for the disk. DiskFull leaves the journal as it was.

        DiskFailed means that it is unknown what reached the disk. Nothing can be appended any more: restart the program,
        which goes on with what it reads then.
        """
        record = encode_record(change)
        with self._until_it_fails():
            self._log.append(record)
            self._size += len(record)
            if durable:
                self._log.sync()

    def rewrite(self, state: bytes) -> None:
        """Replace the file by one that holds only this state. After a crash, the old file or the new one is there, whole.

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
        """Open the file that was renamed into place. Until then the open log belongs to a file without a name."""
        try:
            self._log.close()
            self._log = self._disk.open_log(self._name, len(content))
        except DiskError as error:
            raise DiskFailed(
                f"the journal was rewritten, but the new file cannot be opened: {error}; start the agent again"
            ) from error

    @contextmanager
    def _until_it_fails(self) -> Iterator[None]:
        """Refuse all writes after the first DiskFailed, whatever the disk says then."""
        if self._has_failed:
            raise DiskFailed(f"cannot write to {self._name}: it has failed; open it again")
        try:
            yield
        except DiskFailed:
            self._has_failed = True
            raise

    def _usual_limit(self) -> int:
        return _GROWTH * self._state_bytes + self._slack_bytes
